#include "client/render/dry_run/dry_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/render/report_text.h"
#include "client/render/status_text.h"
#include "tests/unit/client/sample_dry_run.h"

namespace perfd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kGolden[] =
    R"(What would be altered  (a dry run: nothing was stopped, altered or forked)
  LOOP       SHARE  WOULD BE        FUNCTION
  3fa9c2d1   50.0%  patched         compute_forces  lulesh.cc:812-821
            variants  LS FP DL1
            not NO_DIV, NO_RED: it changes nothing
            paths over call 0x401100 are left out
            a shadow  fork 25.0 ms, later faults 5.0 ms, runs up to 120.0 ms; its verdict (4 shadows) 0.20% to 1.00% of the wall time
  77aa0000   25.0%  refused         update  lulesh.cc:100-109
            refused: it calls malloc
  99aa0000   10.0%  patched 1/2     key  ?
            variants  LS
            refused: another build (rank 1 on node2)
            not NO_DIV at 0x401020: it would trap (1 rank)
            a shadow  fork 15.0 ms, later faults 0.0 ms, runs up to 150.0 ms; its verdict (4 shadows) 0.10% to 1.10% of the wall time
  2 of 3 loops would be patched: 60.0% of the job's time; refused: 25.0%.
  The budget of 1.20 s (2.0% of 1m) buys 3 to 26 shadows of each; a verdict needs 4.
  The verdicts on all of them would take 0.30% to 2.00% of the wall time, and each rank some stops of at most 20ms.
  Only a first shadow can tell how long an instance takes, whether the loop is entered at all, and whether it
  writes memory that other processes share: what fails there is left out then.
)";

TEST(DryRunText, Golden) {
  EXPECT_EQ(RenderDryRun(DryRunReport(), {}), kGolden);
}

TEST(DryRunText, ABudgetThatIsTooSmallSaysWhatIsNeeded) {
  Report report = DryRunReport();
  report.status.spec.duration_ns =
      6'000'000'000;  // 120 ms; a round of both loops costs 45 at least
  EXPECT_THAT(RenderDryRun(report, {}), HasSubstr("all verdicts need --duration 9s at least"));
  EXPECT_THAT(RenderDryRun(DryRunReport(), {}), Not(HasSubstr("too little")));
}

TEST(DryRunText, AgentsThatDoNotAnswerAreSaid) {
  Report report = DryRunReport();
  report.findings.verdicts.clear();
  EXPECT_THAT(RenderDryRun(report, {}),
              HasSubstr("compute_forces  lulesh.cc:812-821\n            refused: no agent"));
  EXPECT_THAT(RenderDryRun(report, {}), HasSubstr("0 of 1 loops would be patched"));
}

TEST(DryRunText, NoHotLoop) {
  Report report = DryRunReport();
  report.findings.verdicts.clear();
  for (ReportRow& row : report.loops) row.hot = false;
  EXPECT_THAT(RenderDryRun(report, {}),
              HasSubstr("No hot loop was found in 1000 samples"));
}

TEST(DryRunText, HostileNamesStayOffTheTerminal) {
  Report report = DryRunReport();
  report.findings.verdicts[1].location_key = "a\x1b[31m";
  report.findings.verdicts[1].refusals[0].reason = "b\x1b[31m";
  EXPECT_THAT(RenderDryRun(report, {}), Not(HasSubstr("\x1b")));
}

TEST(DryRunText, TheReportAndTheListSayWhatItIs) {
  const Report report = DryRunReport();
  EXPECT_THAT(RenderReport(report, {}), HasSubstr("What would be altered"));
  EXPECT_THAT(RenderReport(report, {}), Not(HasSubstr("What a fix would save")));
  EXPECT_THAT(RenderProfileList({report.status}, {}), HasSubstr("DONE (dry run)"));
  EXPECT_THAT(RenderStatus(report.status, {}), HasSubstr("dry run: nothing is altered"));
  EXPECT_THAT(RenderProfileList({SampleReport().status}, {}), Not(HasSubstr("dry run")));
}

TEST(DryRunJson, HasEveryLoopWithRanksAndCost) {
  const auto json = DryRunToJson(DryRunReport());
  EXPECT_EQ(json["dry_run"], true);
  EXPECT_EQ(json["patched_loops"], 2);
  EXPECT_DOUBLE_EQ(json["refused_share"], 0.25);
  ASSERT_EQ(json["loops"].size(), 3u);
  const auto& all = json["loops"][0];
  EXPECT_EQ(all["function"], "compute_forces");
  EXPECT_EQ(all["would_be_patched"], true);
  EXPECT_EQ(all["ranks_patched"], 2);
  EXPECT_EQ(all["variants"], (std::vector<std::string>{"LS", "FP", "DL1"}));
  EXPECT_EQ(all["predicted"]["fork_ns"], 25'000'000);
  EXPECT_EQ(all["predicted"]["least_shadows"], 8);
  EXPECT_EQ(all["predicted"]["most_shadows"], 40);
  const auto& refused = json["loops"][1];
  EXPECT_EQ(refused["would_be_patched"], false);
  EXPECT_EQ(refused["refusals"][0]["reason"], "it calls malloc");
  EXPECT_EQ(refused["refusals"][0]["ranks"], 2);
  EXPECT_EQ(refused["predicted"]["most_shadows"], 0);
  const auto& some = json["loops"][2];
  EXPECT_EQ(some["ranks_patched"], 1);
  EXPECT_EQ(some["refusals"][0]["rank_names"], std::vector<std::string>{"rank 1 on node2"});
  EXPECT_EQ(some["refusals"][1]["instruction"], "0x401020");
}

}  // namespace
}  // namespace perfd::client
