#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/commands/history/archive_reader.h"
#include "core/json/report_json.h"
#include "core/json/status_json.h"
#include "tests/unit/client/command_runner.h"
#include "tests/unit/client/sample_history.h"

namespace perfd::client {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class HistoryCommandTest : public testing::Test {
 protected:
  HistoryCommandTest() {
    perfctl.daemon.history = SampleHistory();
    std::string name = testing::TempDir() + "/perfctl-history-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) folder_ = name;
  }
  ~HistoryCommandTest() override { std::filesystem::remove_all(folder_); }

  void Archive(int number, const std::string& command, const std::string& file) {
    Report report = SampleReport();
    report.status.id = absl::StrCat("p-00000", number);
    report.status.started_unix_ns += number * 1'000'000'000'000;
    for (RankSummary& rank : report.ranks) rank.info.command = command;
    const std::string path = folder_ + "/" + file;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << JsonLine(ReportToJson(report));
  }

  CommandRunner perfctl;
  std::string folder_;
};

TEST_F(HistoryCommandTest, EveryFormat) {
  EXPECT_EQ(perfctl.Run({"history"}), 0) << perfctl.err;
  EXPECT_THAT(perfctl.out, HasSubstr("slower since p-000005"));
  EXPECT_EQ(perfctl.daemon.history_asked, (std::pair<std::string, int>("", 30)));
  EXPECT_EQ(perfctl.Run({"history", "app", "--limit", "100", "--json"}), 0);
  EXPECT_EQ(perfctl.daemon.history_asked, (std::pair<std::string, int>("app", 100)));
  EXPECT_EQ(json::parse(perfctl.out)["loops"].size(), 3u);
  EXPECT_EQ(perfctl.Run({"history", "--csv"}), 0);
  EXPECT_EQ(perfctl.out.rfind("loop,profile,", 0), 0u);
  EXPECT_EQ(perfctl.Run({"history", "--loop", "kernel"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("CYCLES/ENTRY"));
  EXPECT_EQ(perfctl.Run({"history", "--loop", "kernel", "--json"}), 0);
  EXPECT_EQ(json::parse(perfctl.out)["loops"].size(), 1u);
  EXPECT_EQ(perfctl.Run({"history", "--loop", "none"}), 3);
  EXPECT_EQ(perfctl.Run({"history", "--limit", "0"}), 2);
  perfctl.daemon.error = absl::NotFoundError("no profile");
  EXPECT_EQ(perfctl.Run({"history"}), 3);
}

TEST_F(HistoryCommandTest, AnArchiveNeedsNoDaemon) {
  Archive(3, "app", "2026/11/22/p-000003.json");
  Archive(1, "app", "2026/11/20/p-000001.json");
  Archive(2, "other", "2026/11/21/p-000002.json");
  std::ofstream(folder_ + "/2026/11/22/p-000004.json") << "{}";
  perfctl.connect_error = absl::UnavailableError("there is none");
  EXPECT_EQ(perfctl.Run({"history", "--archive", folder_, "--json"}), 0) << perfctl.err;
  const json all = json::parse(perfctl.out);
  EXPECT_EQ(all["command"], "app");
  ASSERT_EQ(all["profiles"].size(), 2u);
  EXPECT_EQ(all["profiles"][0]["profile"], "p-000001");
  EXPECT_THAT(all["incomplete"].get<std::string>(), HasSubstr("1 files there are no reports"));
  EXPECT_EQ(perfctl.Run({"history", "other", "--archive", folder_}), 0) << perfctl.err;
  EXPECT_THAT(perfctl.out, HasSubstr("other: 1 profile"));
  EXPECT_EQ(perfctl.Run({"history", "none", "--archive", folder_}), 3);
  EXPECT_EQ(perfctl.Run({"history", "--archive", folder_ + "/none"}), 3);
  EXPECT_EQ(perfctl.Run({"history", "--archive", folder_, "--limit", "1", "--csv"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("p-000003"));
  EXPECT_THAT(perfctl.out, testing::Not(HasSubstr("p-000001")));
}

TEST_F(HistoryCommandTest, FilesElsewhereAreNotRead) {
  Archive(1, "app", "a/b/c/d/e/deep.json");
  Archive(2, "app", "a/b/c/d/there.json");
  std::filesystem::create_symlink(folder_ + "/a/b/c/d/there.json", folder_ + "/link.json");
  const auto history = ReadArchive(folder_, "", 10);
  ASSERT_TRUE(history.ok()) << history.status();
  ASSERT_EQ(history->profiles.size(), 1u);
  EXPECT_EQ(history->profiles[0].id, "p-000002");
}

TEST(ReportLineTest, OneLineAndALink) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"report", "last", "--line"}), 0);
  EXPECT_EQ(perfctl.out.rfind("perfd p-000042: 50% in 1 loop; ", 0), 0u);
  EXPECT_EQ(perfctl.Run({"report", "last", "--url"}), 0);
  EXPECT_EQ(perfctl.out, perfctl.daemon.url + "\n");
  EXPECT_EQ(perfctl.Run({"report", "last", "--url", "--json"}), 0);
  EXPECT_EQ(json::parse(perfctl.out)["url"], perfctl.daemon.url);
  EXPECT_EQ(perfctl.Run({"report", "last", "--url", "--line"}), 2);
  EXPECT_EQ(perfctl.Run({"report", "last", "--line", "--csv"}), 2);
  EXPECT_EQ(perfctl.Run({"report", "last", "--url", "--html", "-"}), 2);
  perfctl.daemon.error = absl::PermissionDeniedError("belongs to another user");
  EXPECT_EQ(perfctl.Run({"report", "p-000042", "--url"}), 4);
}

}  // namespace
}  // namespace perfd::client
