#include "client/render/report_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/render/loop_text.h"
#include "client/render/report_totals.h"
#include "tests/unit/client/sample_report.h"

namespace perfd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kGolden[] = R"(Profile p-000042 "demo"  DONE  2 ranks on 1 node

  LOOP        WALL  95% INTERVAL     INCL     CPU  BAR           FUNCTION
* 3fa9c2d1       -  [48.0, 52.0]    50.0%   50.0%  ############  compute_forces
  #1        lulesh.cc:812-821  lulesh2.0  depth 2, innermost, OpenMP
            rank min/median/max 1.00/1.25/1.50 s  worst rank 1 on node2  imbalance 1.20  threads 2
  77aa0000       -  [23.0, 27.0]    75.0%   25.0%  ######        update
  #2        lulesh.cc:100-109  lulesh2.0  depth 1, outer
            rank min/median/max 0.50/0.62/0.75 s  worst rank 1 on node2  imbalance 1.20  threads 2
  * hot set: loops that together hold 80.0% of the loop time

Outside loops
  ID        WALL    CPU  95% INTERVAL  FUNCTION  SOURCE           MODULE
  cafe0000     -  10.0%  [8.0, 12.0]   main      lulesh.cc:10-19  lulesh2.0

Waiting loops of MPI, OpenMP and C runtimes
  ID        WALL    CPU  95% INTERVAL  FUNCTION       SOURCE  MODULE
  beef0000     -  10.0%  [8.0, 12.0]   opal_progress  ?       lulesh2.0

Where the time went
                    WALL     CPU
  loops                -   75.0%  ###############             750 samples
  outside loops        -   10.0%  ##                          100 samples
  libraries            -   10.0%  ##                          100 samples  (waiting loops 10.0% of CPU)
  kernel               -    4.0%  #                            40 samples
  unknown              -    1.0%                               10 samples
  total                -  100.0%                             1000 samples
  WALL -: some agent does not divide elapsed time; loops are in the order of CPU time

Ranks
  RANK  NODE   PID  COMMAND    WALL S  CPU S  COMPUTE S  WAITED FOR CPU S  SAMPLES  THREADS
     0  node1  100  lulesh2.0       -   2.50       2.00                 -      500        2
     1  node2  200  lulesh2.0       -   2.50       3.00                 -      500        2  ended early
  worst rank 1 on node2, imbalance 1.20 (max / mean of compute seconds)

Samples: 1005 seen, 1000 kept, 7 lost in the kernel, 5 dropped (queue_full 5); 1.2% missing
Cost: 0.240% of the job's CPU time (sampling 0.0120 s, estimated; job 5.00 s); budget 2.0%
  agents used 0.90 s of CPU time beside the job
  added wall time: about 1.51% in the mean of the ranks (sampling 0.0060 s, agents 0.90 s, estimated; stops and shadows 0.0000 s)
Source: sampled
  node1: cpu-clock at 199 Hz, per-thread, user only, sampled, 60.00 s in 12 windows
warning: node2: pid 77: rank ended early
note: no PMU here
)";

TEST(ReportTextTest, Golden) {
  EXPECT_EQ(RenderReport(SampleReport(), {}), kGolden);
}

TEST(ReportTextTest, SaysWhyAProfileThatLastsUntilItKnowsHasEnded) {
  Report report = SampleReport();
  ProfileStatus& status = report.status;
  EXPECT_THAT(RenderReport(report, {}), Not(HasSubstr("Ended after")));
  status.spec.until_known = true;
  status.course.end = EndReason::kKnown;
  EXPECT_THAT(RenderReport(report, {}), HasSubstr("Ended after 60 s: every hot loop is known\n"));
  status.started_unix_ns = 0;  // no sample was taken
  status.course.end = EndReason::kNothingLearnt;
  EXPECT_THAT(RenderReport(report, {}), HasSubstr("Ended after 61 s: nothing more was learnt"));
}

TEST(ReportTextTest, ElapsedTimeComesFirstWhereItIsDivided) {
  Report report = SampleReport();
  report.loops[0].wall = {0.8, {0.7, 0.9}, 0.8};
  report.time.wall = {{0.85, 0.05, 0, 0, 0}, 0.1, 60, 1.5};
  report.ranks[0].elapsed_seconds = 30;
  report.ranks[0].cpu_wait_seconds = 1.5;
  const std::string text = RenderReport(report, {});
  EXPECT_THAT(text, HasSubstr("* 3fa9c2d1   80.0%  [70.0, 90.0]    80.0%   50.0%  ####"));
  EXPECT_THAT(text, HasSubstr("  loops            85.0%   75.0%"));
  EXPECT_THAT(text, HasSubstr("  waiting or idle  10.0%       -"));
  EXPECT_THAT(text, HasSubstr("  total           100.0%  100.0%"));
  EXPECT_THAT(text, HasSubstr("Threads waited 1.50 s for a CPU"));
}

ReportRow KernelRow(KernelCause cause, const char* caller, const char* file) {
  ReportRow row;
  row.location.category = Category::kKernel;
  row.location.function = "[kernel]";
  row.location.kernel_cause = cause;
  row.location.kernel_caller = caller;
  row.location.source = {file, 12, 14};
  row.samples = 5;
  return row;
}

TEST(ReportTextTest, KernelTimeIsToldApartByCauseAndCaller) {
  Report report = SampleReport();
  report.time.kernel = {{KernelCause::kMemoryReturn, 25, 0.025, 0},
                        {KernelCause::kPageFault, 15, 0.015, 0}};
  for (const char* caller : {"munmap", "brk", "madvise"})
    report.functions.push_back(KernelRow(KernelCause::kMemoryReturn, caller, ""));
  report.functions.push_back(KernelRow(KernelCause::kPageFault, "Touch", "/src/t\x1b.c"));
  const std::string text = RenderReport(report, {});
  EXPECT_THAT(text, HasSubstr("    return of memory          -    2.5%             25 samples  by "
                              "munmap, brk\n"));
  EXPECT_THAT(text, HasSubstr("    page faults               -    1.5%             15 samples  by "
                              "Touch (t"));
  EXPECT_THAT(text, HasSubstr("[kernel] return of memory, by munmap"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(ReportTextTest, KernelTimeOfUnknownCauseIsOneFigure) {
  Report report = SampleReport();
  report.time.kernel = {{KernelCause::kUnknown, 40, 0.04, 0}};
  EXPECT_EQ(RenderReport(report, {}), kGolden);
}

TEST(ReportTextTest, TopCutsAndSaysSo) {
  ReportTextOptions options;
  options.top = 1;
  const std::string text = RenderReport(SampleReport(), options);
  EXPECT_THAT(text, HasSubstr("... and 1 more loops (--top 0)"));
  EXPECT_THAT(text, Not(HasSubstr("77aa0000")));
  options.top = 0;
  EXPECT_THAT(RenderReport(SampleReport(), options), HasSubstr("77aa0000"));
}

TEST(ReportTextTest, ThreadsAndRankViews) {
  ReportTextOptions options;
  options.threads = true;
  EXPECT_THAT(RenderReport(SampleReport(), options),
              HasSubstr("node1     0  101      500      50.0%"));
  options.threads = false;
  options.rank = 1;
  const std::string text = RenderReport(SampleReport(), options);
  EXPECT_THAT(text, HasSubstr("Rank 1 (shares of this rank's own time)"));
  EXPECT_THAT(text, HasSubstr("beef0000     -  10.0%   0.30       50  waiting"));
}

TEST(ReportTextTest, ColoursAndBarsOnlyWhenAllowed) {
  EXPECT_THAT(RenderReport(SampleReport(), {}), Not(HasSubstr("\x1b")));
  ReportTextOptions options;
  options.style = {.utf8 = true, .color = true};
  const std::string text = RenderReport(SampleReport(), options);
  EXPECT_THAT(text, HasSubstr("\x1b[33mwarning: "));
  EXPECT_THAT(text, HasSubstr("████████████"));
}

TEST(ReportTextTest, HostileNamesAreDefused) {
  Report report = SampleReport();
  report.loops[0].location.function = "\x1b]0;title\x07";
  report.loops[0].location.source.file = "a\x1b[2J.c";
  report.ranks[0].info.command = "\x1b[31m";
  report.status.notices[0].text = "x\ny";
  EXPECT_THAT(RenderReport(report, {}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(RenderLoop(report.loops[0], {}), Not(HasSubstr("\x1b")));
}

TEST(ReportTextTest, AnEmptyReportIsStillAReport) {
  const std::string text = RenderReport(Report(), {});
  EXPECT_THAT(text, HasSubstr("No time was seen in loops."));
  EXPECT_THAT(text, HasSubstr("No rank was seen."));
}

TEST(LoopTextTest, FindsByUniqueBeginning) {
  const Report report = SampleReport();
  EXPECT_EQ((*FindRow(report, "3fa9"))->location.function, "compute_forces");
  EXPECT_EQ((*FindRow(report, "beef"))->location.function, "opal_progress");
  EXPECT_EQ(FindRow(report, "").status().code(), absl::StatusCode::kNotFound);
  Report twins = SampleReport();
  twins.loops[1].id = "3fa9c2d1ffffffff";
  EXPECT_EQ(FindRow(twins, "3fa9").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(LoopTextTest, FindsByNumber) {
  const Report report = SampleReport();
  EXPECT_EQ((*FindRow(report, "1"))->location.function, "compute_forces");
  EXPECT_EQ((*FindRow(report, "#2"))->location.function, "update");
  for (const char* none : {"0", "3", "77", "#0", "#3", "#7700", "#", "99999999999999999999"}) {
    const absl::Status status = FindRow(report, none).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << none;
    EXPECT_THAT(std::string(status.message()), HasSubstr("numbers 1 to 2")) << none;
  }
  EXPECT_THAT(std::string(FindRow(Report(), "1").status().message()),
              HasSubstr("no time was seen"));
}

TEST(LoopTextTest, ANumberWinsOverTheBeginningOfAnId) {
  Report report = SampleReport();
  report.loops[1].id = "1111111111111111";
  EXPECT_EQ((*FindRow(report, "1111"))->location.function, "update") << "no such number, but an id";
  EXPECT_EQ((*FindRow(report, "1"))->location.function, "compute_forces");
  EXPECT_EQ((*FindRow(report, "1111111111111111"))->location.function, "update");
}

TEST(LoopTextTest, TheListHasTheNumbers) {
  const std::string text = RenderLoopList(SampleReport(), {});
  EXPECT_THAT(text, HasSubstr("  #  LOOP "));
  EXPECT_THAT(text, HasSubstr("  1  3fa9c2d1"));
  EXPECT_THAT(text, HasSubstr("  2  77aa0000"));
}

TEST(ReportTextTest, StopsOfRanksAreACost) {
  Report report = SampleReport();
  report.overhead.stops = 6;
  report.overhead.stop_ns = 12'000'000;
  EXPECT_THAT(RenderReport(report, {}),
              HasSubstr("(sampling 0.0120 s, estimated; 6 stops of ranks 0.0120 s; job 5.00 s)"));
}

TEST(ReportTextTest, MoreThanTheBudgetIsSaid) {
  Report report = SampleReport();
  EXPECT_THAT(RenderAccounting(report), Not(HasSubstr("more than the budget")));
  report.status.spec.budget.overhead_ratio = 1e-6;
  EXPECT_THAT(RenderAccounting(report), HasSubstr("that is more than the budget of 0.0%"));
}

TEST(ReportTextTest, TimeThatWasNotSampledIsToldBesideTheThreadsThatUsedIt) {
  Report report = SampleReport();
  double sampled = 0;
  for (const RankSummary& rank : report.ranks) sampled += rank.seconds;
  const auto text = [&](double job_seconds, uint64_t late) {
    report.overhead.job_cpu_ns = static_cast<uint64_t>(job_seconds * 1e9);
    report.accounting.late_threads = late;
    return RenderAccounting(report);
  };
  EXPECT_THAT(text(2 * sampled, 50), HasSubstr("50 threads ran before they were seen: "));
  EXPECT_THAT(text(2 * sampled, 50), HasSubstr("shares are of what was sampled"));
  EXPECT_THAT(text(1.01 * sampled, 50), Not(HasSubstr("shares are of what was sampled")));
  EXPECT_THAT(text(2 * sampled, 0), Not(HasSubstr("ran before they were seen")));
  EXPECT_THAT(text(2.1 * sampled, 0), Not(HasSubstr("less than a sampling period")))
      << "some were lost";
  report.accounting = {};
  EXPECT_THAT(text(1.9 * sampled, 0), Not(HasSubstr("less than a sampling period")));
  EXPECT_THAT(text(2.1 * sampled, 0), HasSubstr("less than a sampling period each"));
  for (RankSummary& rank : report.ranks) rank.seconds = 0;
  const double hz = report.nodes.front().setup.frequency_hz;
  EXPECT_THAT(text(21 / hz, 0), HasSubstr("sampled: 0.0000 of the job's"));
  EXPECT_THAT(text(19 / hz, 0), Not(HasSubstr("sampled: "))) << "it may be chance";
}

TEST(ReportTextTest, ANoticeNamesItsProcessOnce) {
  Report report = SampleReport();
  const auto text_of = [&report](const std::string& text) {
    Notice notice;
    notice.node = "n1";
    notice.pid = 17;
    notice.text = text;
    report.status.notices = {notice};
    return RenderReport(report, {});
  };
  EXPECT_THAT(text_of("rank 3 (app) joined"), HasSubstr("note: n1: pid 17: rank 3 (app) joined\n"));
  EXPECT_THAT(text_of("rank 3 (pid 17) is measured"), HasSubstr("note: n1: rank 3 (pid 17) is"));
  EXPECT_THAT(text_of("process 17 (app) is old"), HasSubstr("note: n1: process 17 (app) is old"));
  EXPECT_THAT(text_of("process 171 is older"), HasSubstr("note: n1: pid 17: process 171 is older"));
}

TEST(LoopTextTest, DrillsDownToRanksAndThreads) {
  const std::string text = RenderLoop(SampleReport().loops[0], {});
  EXPECT_THAT(text, HasSubstr("source     /src/lulesh.cc (lulesh.cc:812-821)"));
  EXPECT_THAT(text, HasSubstr("depth 2, innermost, OpenMP; header 0x401000"));
  EXPECT_THAT(text, HasSubstr("    1  node2     1.50    50.0%      250"));
  EXPECT_THAT(text, HasSubstr("    0  node1  100  101      50.0%      500"));
}

TEST(LoopTextTest, SaysWhereElseItsCodeLies) {
  ReportRow row = SampleReport().loops[0];
  EXPECT_THAT(RenderLoop(row, {}), Not(HasSubstr("also at")));
  row.location.loop->further_parts = {{0x400800, 0x400810}, {0x409000, 0x409100}};
  EXPECT_THAT(RenderLoop(row, {}), HasSubstr("instructions, also at 0x400800, also at 0x409000\n"));
}

}  // namespace
}  // namespace perfd::client
