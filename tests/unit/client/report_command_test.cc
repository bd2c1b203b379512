#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/unit/client/command_runner.h"

namespace perfd::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(ReportCommandTest, EveryFormat) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"report", "last"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("compute_forces"));
  EXPECT_EQ(perfctl.Run({"report", "last", "--json"}), 0);
  EXPECT_EQ(json::parse(perfctl.out)["loops"].size(), 2u);
  EXPECT_EQ(perfctl.Run({"report", "last", "--csv"}), 0);
  EXPECT_EQ(perfctl.out.rfind("kind,id,", 0), 0u);
  EXPECT_EQ(perfctl.Run({"report", "last", "--folded"}), 0);
  EXPECT_EQ(perfctl.out.rfind("lulesh2.0;compute_forces;", 0), 0u);
  EXPECT_EQ(perfctl.Run({"report", "last", "--pprof", "-"}), 0);
  EXPECT_EQ(perfctl.out.substr(0, 2), "\x1f\x8b");  // gzip magic, RFC 1952
}

TEST(ReportCommandTest, PprofFiles) {
  CommandRunner perfctl;
  const std::string file = testing::TempDir() + "/perfctl_report_test.pb.gz";
  EXPECT_EQ(perfctl.Run({"report", "last", "--pprof", file}), 0);
  EXPECT_GT(std::filesystem::file_size(file), 100u);
  std::filesystem::remove(file);
  EXPECT_EQ(perfctl.Run({"report", "last", "--pprof", "/does/not/exist/x"}), 1);
  EXPECT_THAT(perfctl.err, HasSubstr("cannot write"));
}

TEST(ReportCommandTest, HtmlPages) {
  CommandRunner perfctl;
  const std::string file = testing::TempDir() + "/perfctl_report_test.html";
  std::filesystem::remove(file);
  EXPECT_EQ(perfctl.Run({"report", "last", "--html", file}), 0);
  EXPECT_THAT(perfctl.err, HasSubstr("Wrote " + file));
  EXPECT_EQ(perfctl.out, "");
  EXPECT_EQ(perfctl.Run({"report", "last", "--html", file}), 1);
  EXPECT_THAT(perfctl.err, HasSubstr("it exists"));
  EXPECT_EQ(perfctl.Run({"report", "last", "--html", file, "--force"}), 0);
  std::filesystem::remove(file);
  EXPECT_EQ(perfctl.Run({"report", "last", "--html", "-"}), 0);
  EXPECT_EQ(perfctl.out.rfind("<!DOCTYPE html>", 0), 0u);
  EXPECT_THAT(perfctl.out, HasSubstr("compute_forces"));
  EXPECT_EQ(perfctl.Run({"report", "last", "--html", "/does/not/exist/x"}), 1);
  EXPECT_THAT(perfctl.err, HasSubstr("there is no directory '/does/not/exist'"));
  EXPECT_EQ(perfctl.Run({"report", "last", "--html", file, "--csv"}), 2);
  EXPECT_EQ(perfctl.Run({"report", "last", "--force"}), 2);
}

TEST(ReportCommandTest, FormatsExcludeEachOther) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"report", "last", "--csv", "--folded"}), 2);
  EXPECT_EQ(perfctl.Run({"report", "last", "--csv", "--rank", "1"}), 2);
}

TEST(ReportCommandTest, RanksThatExist) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"report", "last", "--rank", "1"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("Rank 1"));
  EXPECT_EQ(perfctl.Run({"report", "last", "--rank", "9"}), 3);
}

TEST(ReportCommandTest, StatesDecideTheExitCode) {
  CommandRunner perfctl;
  perfctl.daemon.report.status.state = ProfileState::kPartial;
  EXPECT_EQ(perfctl.Run({"report", "last"}), 8);
  EXPECT_THAT(perfctl.out, HasSubstr("compute_forces"));
  perfctl.daemon.report.status.state = ProfileState::kSampling;
  EXPECT_EQ(perfctl.Run({"report", "last"}), 0);
  EXPECT_THAT(perfctl.err, HasSubstr("still SAMPLING"));
  perfctl.daemon.error = absl::NotFoundError("no profile 'p-9'");
  EXPECT_EQ(perfctl.Run({"report", "p-9"}), 3);
}

TEST(LoopsCommandTest, ListAndDrillDown) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"loops", "last"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("3fa9c2d1     -  50.0%"));
  EXPECT_EQ(perfctl.Run({"loops", "last", "--loop", "3fa9"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("Loop 3fa9c2d100000001"));
  EXPECT_EQ(perfctl.Run({"loops", "last", "--loop", "3fa9", "--json"}), 0);
  EXPECT_EQ(json::parse(perfctl.out)["threads"][0]["tid"], 101);
  EXPECT_EQ(perfctl.Run({"loops", "last", "--loop", "0000"}), 3);
}

TEST(DiffCommandTest, AsksForBoth) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"diff", "p-1", "last", "--json"}), 0);
  EXPECT_EQ(perfctl.daemon.ids, (std::vector<std::string>{"p-1", "last"}));
  EXPECT_EQ(json::parse(perfctl.out)["loops"][0]["significant"], false);
}

}  // namespace
}  // namespace perfd::client
