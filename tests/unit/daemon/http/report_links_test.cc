#include "daemon/http/report_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/host_name.h"

namespace perfd::daemon {
namespace {

class ReportLinksTest : public testing::Test {
 protected:
  ReportLinksTest() {
    std::string name = testing::TempDir() + "/perfd-links-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) folder_ = name;
  }
  ~ReportLinksTest() override { std::filesystem::remove_all(folder_); }

  std::string Url(const std::string& id = "p-000042") {
    const auto links = ReportLinks::Load(folder_, "http://h:1", false);
    EXPECT_TRUE(links.ok()) << links.status();
    return links.ok() ? links->UrlOf(id) : "";
  }
  std::string file() const { return folder_ + "/report.key"; }

  std::string folder_;
};

// Source: printf 'report p-000042' | openssl dgst -sha256 -mac HMAC -macopt hexkey:00...00 (32 bytes)
constexpr char kKnownKey[] = "636b027f11870a95b230a1ba4c1a7812";

TEST_F(ReportLinksTest, TheKeyIsWhatOpensslSays) {
  const ReportLinks links(std::string(32, '\0'), "http://h:1", false);
  EXPECT_EQ(links.UrlOf("p-000042"), std::string("http://h:1/profiles/p-000042?key=") + kKnownKey);
  EXPECT_TRUE(links.Opens("p-000042", kKnownKey));
}

TEST_F(ReportLinksTest, OnlyTheWholeKeyOfThatReportOpensIt) {
  const ReportLinks links(std::string(32, '\0'), "http://h:1", false);
  const std::string key = kKnownKey;
  EXPECT_FALSE(links.Opens("p-000043", key));
  EXPECT_FALSE(links.Opens("p-000042", ""));
  EXPECT_FALSE(links.Opens("p-000042", key.substr(0, 31)));
  EXPECT_FALSE(links.Opens("p-000042", key + "0"));
  for (size_t i = 0; i < key.size(); ++i) {
    std::string other = key;
    other[i] = other[i] == '0' ? '1' : '0';
    EXPECT_FALSE(links.Opens("p-000042", other));
  }
  EXPECT_FALSE(ReportLinks(std::string(32, '\1'), "", false).Opens("p-000042", key));
}

TEST_F(ReportLinksTest, OpenReportsNeedNoKey) {
  const ReportLinks links(std::string(32, '\0'), "http://h:1", true);
  EXPECT_EQ(links.UrlOf("p-000042"), "http://h:1/profiles/p-000042");
  EXPECT_TRUE(links.Opens("p-000042", ""));
}

TEST_F(ReportLinksTest, TheSecretIsMadeOnceAndOnlyOurs) {
  const std::string url = Url();
  EXPECT_EQ(Url(), url);
  struct stat info {};
  ASSERT_EQ(::stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_EQ(info.st_size, 32);
  std::filesystem::remove(file());
  EXPECT_NE(Url(), url);
}

TEST_F(ReportLinksTest, ASecretThatOthersMayReadIsRefused) {
  Url();
  for (const mode_t mode : {0640u, 0604u, 0660u}) {
    ASSERT_EQ(::chmod(file().c_str(), mode), 0);
    const auto links = ReportLinks::Load(folder_, "", false);
    EXPECT_EQ(links.status().code(), absl::StatusCode::kPermissionDenied) << mode;
    EXPECT_THAT(std::string(links.status().message()), testing::HasSubstr("chmod 600"));
  }
}

TEST_F(ReportLinksTest, ADamagedSecretIsRefused) {
  for (const size_t bytes : {size_t{0}, size_t{31}, size_t{33}}) {
    std::ofstream(file()) << std::string(bytes, 'x');
    ASSERT_EQ(::chmod(file().c_str(), 0600), 0);
    EXPECT_EQ(ReportLinks::Load(folder_, "", false).status().code(), absl::StatusCode::kDataLoss);
  }
  std::filesystem::remove(file());
  std::filesystem::create_symlink("/etc/hostname", file());
  EXPECT_EQ(ReportLinks::Load(folder_, "", false).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ReportLinks::Load(folder_ + "/none", "", false).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(LinkBaseTest, WhatTheSiteSaysOrWherePerfdListens) {
  EXPECT_EQ(LinkBase("https://perf.site/", "127.0.0.1:9754"), "https://perf.site");
  EXPECT_EQ(LinkBase("", "127.0.0.1:9754"), "http://127.0.0.1:9754");
  EXPECT_EQ(LinkBase("", "0.0.0.0:9754"), "http://" + HostName() + ":9754");
  EXPECT_EQ(LinkBase("", "[::]:9754"), "http://" + HostName() + ":9754");
  EXPECT_EQ(LinkBase("", "[::1]:9754"), "http://[::1]:9754");
}

}  // namespace
}  // namespace perfd::daemon
