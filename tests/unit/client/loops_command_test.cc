#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/client/command_runner.h"
#include "tests/unit/client/sample_verdicts.h"

namespace perfd::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(LoopsCommandTest, DrillsDownIntoAMeasuredLoop) {
  CommandRunner perfctl;
  perfctl.daemon.report = MeasuredReport();
  EXPECT_EQ(perfctl.Run({"loops", "last", "--loop", "3fa9"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("Measured by variants"));
  EXPECT_EQ(perfctl.Run({"loops", "last", "--loop", "3fa9", "--rank", "1", "--variant", "LS"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("Rank 1 on node2"));
  EXPECT_THAT(perfctl.out, HasSubstr("vaddpd"));
  EXPECT_EQ(perfctl.Run({"loops", "last", "--loop", "3fa9", "--rank", "9"}), 3);
  EXPECT_EQ(perfctl.Run({"loops", "last", "--loop", "3fa9", "--variant", "FP"}), 3);
}

TEST(LoopsCommandTest, TakesANumber) {
  CommandRunner perfctl;
  perfctl.daemon.report = MeasuredReport();
  EXPECT_EQ(perfctl.Run({"loops", "last", "--loop", "1"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("Loop 3fa9c2d100000001"));
  EXPECT_EQ(perfctl.Run({"loops", "last", "--loop", "3"}), 3);
  EXPECT_THAT(perfctl.err, HasSubstr("numbers 1 to 2"));
  EXPECT_EQ(perfctl.Run({"loops", "last", "--json"}), 0);
  EXPECT_EQ(json::parse(perfctl.out)["loops"][1]["number"], 2);
}

TEST(LoopsCommandTest, WithoutVariants) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"loops", "last", "--loop", "3fa9"}), 0);
  EXPECT_THAT(perfctl.out, Not(HasSubstr("Measured")));
  EXPECT_EQ(perfctl.Run({"loops", "last", "--loop", "3fa9", "--variant", "LS"}), 3);
  EXPECT_EQ(perfctl.Run({"loops", "last", "--rank", "1"}), 2);  // needs --loop
}

TEST(LoopsCommandTest, Json) {
  CommandRunner perfctl;
  perfctl.daemon.report = MeasuredReport();
  EXPECT_EQ(perfctl.Run({"loops", "last", "--loop", "3fa9", "--json"}), 0);
  EXPECT_EQ(json::parse(perfctl.out)["verdict"]["bound"], "memory_bound");
  perfctl.daemon.report.findings.verdicts.clear();
  EXPECT_EQ(perfctl.Run({"loops", "last", "--loop", "3fa9", "--json"}), 0);
  EXPECT_TRUE(json::parse(perfctl.out)["verdict"].is_null());
}

TEST(AuditCommandTest, ListsInjections) {
  CommandRunner perfctl;
  perfctl.daemon.audit.resize(1);
  perfctl.daemon.audit[0].action = "restore";
  EXPECT_EQ(perfctl.Run({"audit", "p-000042"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("restore"));
  EXPECT_EQ(perfctl.daemon.ids.back(), "p-000042");
  EXPECT_EQ(perfctl.Run({"audit", "--json"}), 0);
  EXPECT_EQ(json::parse(perfctl.out)["entries"].size(), 1u);
  EXPECT_EQ(perfctl.daemon.ids.back(), "");
  EXPECT_EQ(perfctl.Run({"audit", "--limit", "0"}), 2);
}

TEST(ExplainCommandTest, ListsTheVariants) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"explain", "variants.set"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("what would a perfect cache bring?"));
  EXPECT_THAT(perfctl.out, HasSubstr("PREFETCH(p)"));
  EXPECT_EQ(perfctl.Run({"explain", "hotspots.frequency"}), 0);
  EXPECT_THAT(perfctl.out, Not(HasSubstr("PREFETCH")));
}

TEST(ReportCommandTest, ShowsTheSaturations) {
  CommandRunner perfctl;
  perfctl.daemon.report = MeasuredReport();
  EXPECT_EQ(perfctl.Run({"report", "last"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("What a fix would save"));
  EXPECT_EQ(perfctl.Run({"report", "last", "--json"}), 0);
  EXPECT_EQ(json::parse(perfctl.out)["verdicts"].size(), 2u);
}

}  // namespace
}  // namespace perfd::client
