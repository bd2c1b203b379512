// perfctl submit --dry-run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/commands/dry_run.h"
#include "tests/unit/client/command_runner.h"
#include "tests/unit/client/sample_dry_run.h"

namespace perfd::client {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct DryRunRunner : CommandRunner {
  DryRunRunner() { Answer(DryRunReport()); }
  void Answer(Report report) {
    daemon.report = std::move(report);
    daemon.events = {{daemon.report.status, daemon.report.loops}};
  }
  int Dry(std::vector<std::string> more = {}) {
    std::vector<std::string> all = {"submit", "--command", "x", "--dry-run"};
    all.insert(all.end(), more.begin(), more.end());
    return Run(all);
  }
};

TEST(DryRunCommand, AsksForADryRunAndShowsTheTable) {
  DryRunRunner perfctl;
  EXPECT_EQ(perfctl.Dry({"--timeout", "2m"}), 0) << perfctl.err;
  ASSERT_TRUE(perfctl.daemon.submitted.has_value());
  EXPECT_TRUE(perfctl.daemon.submitted->dry_run);
  EXPECT_EQ(perfctl.daemon.watch_timeout, absl::Minutes(2));
  EXPECT_THAT(perfctl.out, HasSubstr("3fa9c2d1   50.0%  patched"));
  EXPECT_THAT(perfctl.out, Not(HasSubstr("Outside loops")));
  EXPECT_THAT(perfctl.err, HasSubstr("p-000042 DONE (dry run) 100.0%"));
  EXPECT_THAT(perfctl.daemon.cancelled, IsEmpty());
}

TEST(DryRunCommand, JsonIsOneObjectAndNothingElse) {
  DryRunRunner perfctl;
  EXPECT_EQ(perfctl.Dry({"--json"}), 0);
  EXPECT_EQ(json::parse(perfctl.out)["loops"].size(), 3u);
  EXPECT_EQ(perfctl.err, "");
}

TEST(DryRunCommand, ExitCodesSayHowItWouldGo) {
  DryRunRunner perfctl;
  Report report = DryRunReport();
  report.findings.verdicts = {report.findings.verdicts[2]};
  report.loops[0].hot = false;
  perfctl.Answer(report);
  EXPECT_EQ(perfctl.Dry(), 6);  // every loop is refused

  report.findings.verdicts.clear();
  perfctl.Answer(report);
  EXPECT_EQ(perfctl.Dry(), 3);  // there is no hot loop

  report = DryRunReport();
  report.status.spec.budget.overhead_ratio = 0.0001;  // 6 ms; the cheapest shadow costs 15
  perfctl.Answer(report);
  EXPECT_EQ(perfctl.Dry(), 7);
  report.status.spec.budget.overhead_ratio = 0.00025;  // 15 ms
  perfctl.Answer(report);
  EXPECT_EQ(perfctl.Dry(), 0);

  report = DryRunReport();
  report.status.state = ProfileState::kPartial;
  perfctl.Answer(report);
  EXPECT_EQ(perfctl.Dry(), 8);

  report.status.state = ProfileState::kFailed;
  report.status.notices = {
      {Notice::Severity::kError, absl::StatusCode::kNotFound, "", 0, "no process matches"}};
  perfctl.Answer(report);
  EXPECT_EQ(perfctl.Dry(), 3);
  EXPECT_THAT(perfctl.err, HasSubstr("no process matches"));
  EXPECT_EQ(perfctl.out, "");
}

TEST(DryRunCommand, AnInterruptOrATimeoutEndsIt) {
  DryRunRunner perfctl;
  perfctl.interrupted = true;
  EXPECT_EQ(perfctl.Dry(), 1);
  EXPECT_THAT(perfctl.daemon.cancelled, ElementsAre("p-000042"));
  perfctl.interrupted = false;
  perfctl.daemon.events.clear();
  perfctl.daemon.watch_result = absl::DeadlineExceededError("too long");
  EXPECT_EQ(perfctl.Dry(), 124);
  EXPECT_THAT(perfctl.daemon.cancelled, ElementsAre("p-000042", "p-000042"));
}

TEST(DryRunCommand, APerfdThatTakesItForAProfileIsStopped) {
  DryRunRunner perfctl;
  Report report = DryRunReport();
  report.status.spec.dry_run = false;
  perfctl.Answer(report);
  EXPECT_EQ(perfctl.Dry(), 1);
  EXPECT_THAT(perfctl.daemon.cancelled, ElementsAre("p-000042"));
  EXPECT_THAT(perfctl.err, HasSubstr("cannot do dry runs"));
}

TEST(DryRunCommand, WithoutVariantsThereIsNothingToAsk) {
  DryRunRunner perfctl;
  EXPECT_EQ(perfctl.Dry({"--variants", "none"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("nothing would be altered"));
  EXPECT_EQ(perfctl.address, "");
  EXPECT_EQ(perfctl.Dry({"--variants", "none", "--json"}), 0);
  EXPECT_EQ(json::parse(perfctl.out)["patched_loops"], 0);
}

TEST(DryRunCommand, RefusalsOfTheDaemonHaveTheCodesOfSubmit) {
  DryRunRunner perfctl;
  perfctl.daemon.error = absl::PermissionDeniedError("not yours");
  EXPECT_EQ(perfctl.Dry(), 4);
  EXPECT_THAT(perfctl.err, HasSubstr("not yours"));
}

TEST(DryRunCommand, AnOrdinarySubmitIsNone) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"submit", "--command", "x"}), 0);
  EXPECT_FALSE(perfctl.daemon.submitted->dry_run);
}

}  // namespace
}  // namespace perfd::client
