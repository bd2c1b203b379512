// The key of agent and client is looked at as that of perfd is: before anybody is dialled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/dial/dial.h"
#include "tests/unit/core/certificate/made_certificate.h"

namespace perfd {
namespace {

TEST(KeyModeTest, AKeyThatOthersMayReadIsRefused) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/dial-key-", ::getpid());
  const absl::Time now = absl::Now();
  std::ofstream(path)
      << MadeCertificate({.begins = now - absl::Hours(1), .ends = now + absl::Hours(1)}).Pem();
  DialOptions options;
  options.address = "localhost:1";
  options.tls_ca = options.tls_cert = options.tls_key = path;
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_TRUE(Dial(options).ok()) << "nothing is sent before the first call";
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  const absl::Status status = Dial(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::HasSubstr("--tls-key"), testing::HasSubstr("chmod 600")));
  std::filesystem::remove(path);
  EXPECT_THAT(std::string(Dial(options).status().message()), testing::HasSubstr("--tls-ca"));
}

}  // namespace
}  // namespace perfd
