#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/dial/dial_settings.h"
#include "tests/unit/core/certificate/made_certificate.h"

namespace perfd {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kDay = absl::Hours(24);

class OwnCertificateTest : public testing::Test {
 protected:
  OwnCertificateTest() {
    InitLog("test", LogLevel::kInfo);
    options_.address = "127.0.0.1:1";
    options_.tls_ca = options_.tls_cert = options_.tls_key = path_;
  }
  ~OwnCertificateTest() override { std::filesystem::remove(path_); }

  // One of a year that ends then.
  void EndsAt(absl::Time time) {
    std::ofstream(path_) << MadeCertificate({.begins = time - 365 * kDay, .ends = time}).Pem();
    std::filesystem::permissions(
        path_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  std::string Warnings(DialSettings& settings, absl::Time now) {
    testing::internal::CaptureStderr();
    settings.WarnOfExpiry(now);
    return testing::internal::GetCapturedStderr();
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / absl::StrCat("perfd-own-", ::getpid())).string();
  DialOptions options_;
};

TEST_F(OwnCertificateTest, OneThatIsOverIsRefusedBeforeItIsShown) {
  EndsAt(absl::Now() - absl::Hours(1));
  const absl::Status status = Dial(options_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("--tls-cert ", path_, ": it ended on")));
  EndsAt(absl::Now() + 400 * kDay);
  EXPECT_THAT(std::string(Dial(options_).status().message()), HasSubstr("it is valid only from"));
  EndsAt(absl::Now() + kDay);
  EXPECT_TRUE(Dial(options_).ok());
}

TEST_F(OwnCertificateTest, TheEndIsSaidOnceADay) {
  const absl::Time end = absl::FromUnixSeconds(1'800'000'000);
  EndsAt(end);
  DialSettings settings(options_);
  EXPECT_EQ(Warnings(settings, end - 30 * kDay), "");
  EXPECT_EQ(Warnings(settings, end - 29 * kDay - absl::Hours(1)), "");  // asked within the day
  EXPECT_THAT(Warnings(settings, end - 29 * kDay),
              HasSubstr(absl::StrCat(path_, ": it ends on 2027-01-15")));
  EXPECT_EQ(Warnings(settings, end - 29 * kDay + absl::Hours(1)), "");
  EXPECT_THAT(Warnings(settings, end - 28 * kDay), HasSubstr("in 28 days"));
  EndsAt(end + 300 * kDay);  // renewed
  EXPECT_EQ(Warnings(settings, end - 27 * kDay), "");
}

TEST_F(OwnCertificateTest, AUnixSocketNeedsNone) {
  options_.address = "unix:/x";
  DialSettings settings(options_);
  EXPECT_EQ(Warnings(settings, absl::Now()), "");
  EXPECT_FALSE(NeedsTls(options_));
}

TEST_F(OwnCertificateTest, OtherFilesCountForTheSameAddress) {
  DialSettings settings(options_);
  DialOptions others;
  others.address = "elsewhere:1";
  others.tls_ca = "a";
  others.tls_cert = "b";
  others.tls_key = "c";
  settings.SetTls(others);
  const DialOptions now = settings.options();
  EXPECT_EQ(now.address, options_.address);
  EXPECT_EQ(now.tls_ca + now.tls_cert + now.tls_key, "abc");
}

}  // namespace
}  // namespace perfd
