#include "daemon/pipeline/to_figure.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/unit/core/analysis/silent_loops.h"
#include "tests/unit/daemon/pipeline/pipeline_fixture.h"

namespace perfd::daemon {
namespace {

ReportRow Row(const std::string& id, double share) {
  ReportRow row;
  row.id = id;
  row.share = share;
  return row;
}

ThreadShare OfThread(int32_t rank, int32_t tid, uint64_t samples) {
  ThreadShare share;
  share.thread = {"a", rank, 100 + rank, tid};
  share.samples = samples;
  return share;
}

Report Sample() {
  Report report;
  report.status.id = "p-000007";
  report.status.state = ProfileState::kPartial;
  report.status.spec.target.slurm_job = 4711;
  report.status.spec.budget.overhead_ratio = 0.05;
  report.status.samples = 99;
  report.status.submitted_unix_ns = 1'700'000'000'500'000'000;
  report.status.nodes.resize(2);
  report.status.nodes[0].ranks = 3;
  report.status.nodes[0].threads = 6;
  report.status.nodes[1].ranks = 1;
  report.status.nodes[1].threads = 2;
  report.ranks.resize(4);
  report.imbalance = 1.5;
  report.missing_ratio = 0.125;
  report.overhead_ratio = 0.01;
  report.findings.injection.added_ratio = 0.03;
  report.category_share = {0.5, 0.25, 0.125, 0.125, 0};
  report.loops = {Row("x", 0.4), Row("y", 0.1)};
  ReportRow& row = report.loops[0];
  row.rank_seconds.min = 1;
  row.rank_seconds.median = 2;
  row.rank_seconds.max = 6;
  row.imbalance = 2;
  row.ranks = {{"a", 0, 0, 1, 0}, {"a", 1, 0, 6, 0}};
  row.threads = {OfThread(0, 1, 1), OfThread(0, 2, 1000), OfThread(1, 3, 10), OfThread(1, 4, 30)};
  return report;
}

TEST(ToFigure, TellsHowFarAProfileIs) {
  const Report report = Sample();
  const ProfileFigure figure = ToFigure(report.status, report.loops, 1);
  EXPECT_EQ(figure.id, "p-000007");
  EXPECT_EQ(figure.slurm_job, "4711");
  EXPECT_EQ(figure.command, "");
  EXPECT_EQ(figure.progress.state, "PARTIAL");
  EXPECT_EQ(figure.progress.samples, 99u);
  EXPECT_EQ(figure.progress.nodes, 2u);
  EXPECT_EQ(figure.progress.ranks, 4u);
  EXPECT_EQ(figure.progress.threads, 8u);
  EXPECT_DOUBLE_EQ(figure.progress.budget_ratio, 0.05);
  EXPECT_DOUBLE_EQ(figure.progress.submitted_seconds, 1.7e9 + 0.5);
  EXPECT_EQ(figure.progress.finished_seconds, 0);
  ASSERT_EQ(figure.loops.size(), 1u);
  EXPECT_FALSE(figure.loops[0].spread.has_value());
  EXPECT_FALSE(figure.outcome.has_value());
}

TEST(ToFigure, MemoryOfALoopIsThereWhereItsAccessesTell) {
  Report report = Sample();
  MemoryPlace& place = report.findings.memory.places.emplace_back();
  place.id = "y";
  MemoryProfile& profile = place.figures.profile;
  profile.all = {8, 800};
  profile.tlb[static_cast<size_t>(TlbResult::kHit)] = {6, 600};
  profile.tlb[static_cast<size_t>(TlbResult::kWalk)] = {2, 200};
  BeyondShare& beyond = place.figures.beyond[static_cast<size_t>(MemoryBorder::kL2)];
  beyond.why_not = NoShare::kNone;
  beyond.share = 0.75;
  ProfileFigure figure = ToFigure(report.status, report.loops, 2);
  AddOutcome(report, figure);
  EXPECT_FALSE(figure.loops[0].memory.beyond_l2_ratio.has_value()) << "no access was sampled in it";
  EXPECT_FALSE(figure.loops[0].memory.walks_ratio.has_value());
  EXPECT_EQ(figure.loops[1].memory.beyond_l2_ratio, 0.75);
  EXPECT_EQ(figure.loops[1].memory.walks_ratio, 0.25);

  beyond.why_not = NoShare::kTooFew;
  profile.tlb = {};
  profile.tlb[static_cast<size_t>(TlbResult::kUnknown)] = {8, 800};
  AddOutcome(report, figure);
  EXPECT_FALSE(figure.loops[1].memory.beyond_l2_ratio.has_value());
  EXPECT_FALSE(figure.loops[1].memory.walks_ratio.has_value()) << "none of them tells";
}

TEST(ToFigure, TheOutcomeComesFromTheReport) {
  const Report report = Sample();
  ProfileFigure figure = ToFigure(report.status, report.loops, 2);
  AddOutcome(report, figure);
  ASSERT_TRUE(figure.outcome.has_value());
  EXPECT_EQ(figure.outcome->missing_ratio, 0.125);
  EXPECT_EQ(figure.outcome->sampling_overhead_ratio, 0.01);
  EXPECT_EQ(figure.outcome->added_time_ratio, 0.03);
  EXPECT_EQ(figure.outcome->imbalance_ratio, 1.5);
  ASSERT_EQ(figure.outcome->category_shares.size(), 5u);
  EXPECT_EQ(figure.outcome->category_shares[0].first, "loops");
  EXPECT_EQ(figure.outcome->category_shares[1].second, 0.25);
  ASSERT_TRUE(figure.loops[0].spread.has_value());
  EXPECT_EQ(figure.loops[0].spread->rank_min_seconds, 1);
  EXPECT_EQ(figure.loops[0].spread->rank_median_seconds, 2);
  EXPECT_EQ(figure.loops[0].spread->rank_max_seconds, 6);
  EXPECT_EQ(figure.loops[0].spread->rank_imbalance_ratio, 2);
  // Of rank 1, which has most of the time: 30 of 10 and 30. Not of rank 0, whose threads differ more.
  EXPECT_EQ(figure.loops[0].spread->thread_imbalance_ratio, 1.5);
  EXPECT_EQ(figure.loops[1].spread->thread_imbalance_ratio, 1);  // no ranks, no threads
}

TEST(ToFigure, TheProgramOfAJobThatWasAskedForByNumberComesFromItsRanks) {
  Report report = Sample();
  report.ranks[0].info.command = "wrapper";
  report.ranks[1].info.command = report.ranks[2].info.command = "lulesh2.0";
  ProfileFigure figure = ToFigure(report.status, report.loops, 2);
  EXPECT_EQ(figure.command, "");
  AddOutcome(report, figure);
  EXPECT_EQ(figure.command, "lulesh2.0");
  report.status.spec.target.command = "asked";
  figure = ToFigure(report.status, report.loops, 2);
  AddOutcome(report, figure);
  EXPECT_EQ(figure.command, "asked");
}

TEST(ToFigure, AReportWithoutRanksTellsNothing) {
  Report report = Sample();
  ProfileFigure figure = ToFigure(report.status, report.loops, 2);
  report.ranks.clear();
  AddOutcome(report, figure);
  EXPECT_FALSE(figure.outcome.has_value());
  EXPECT_FALSE(figure.loops[0].spread.has_value());
}

TEST(ToFigure, AVerdictNamesWhatBindsTheLoop) {
  LoopVerdict verdict;
  verdict.loop_id = "x";
  verdict.state = MeasureState::kMeasured;
  verdict.bound = Bound::kMemory;
  verdict.level = DataLevel::kL2;
  verdict.variants.resize(1);
  verdict.variants[0].variant = "LS";
  verdict.variants[0].ranks = {1, 2};
  verdict.variants[0].saturation.value = 0.9;
  ProfileFigure figure;
  AddVerdicts({verdict}, 1, figure);
  ASSERT_EQ(figure.measured.size(), 1u);
  EXPECT_EQ(figure.measured[0].bound, BoundName(Bound::kMemory));
  EXPECT_EQ(figure.measured[0].level, DataLevelName(DataLevel::kL2));
  EXPECT_EQ(figure.measured[0].saturations[0].ratio, 0.9);
  EXPECT_FALSE(figure.measured[0].gain_ratio.has_value()) << "none is known";
}

TEST(ToFigure, AGainSaysHowManyRanksHaveIt) {
  LoopVerdict verdict = JudgedAs({MeasuredLoop()}, "x");
  verdict.gains[0].ranks = {1, 4};
  ProfileFigure figure;
  AddVerdicts({verdict}, 1, figure);
  EXPECT_EQ(figure.measured[0].gain_ratio, verdict.gains[0].of_job.value);
  EXPECT_EQ(figure.measured[0].gain_ranks_ratio, 0.25);
  verdict.gains[0].ranks = {};
  figure.measured.clear();
  AddVerdicts({verdict}, 1, figure);
  EXPECT_EQ(figure.measured[0].gain_ranks_ratio, 1);
}

TEST(ToFigure, SilentLoopsHaveNoNameAndNoGain) {
  ProfileFigure named;
  AddVerdicts({JudgedAs({MeasuredLoop()}, "x")}, 1, named);
  EXPECT_EQ(named.measured[0].bound, BoundName(Bound::kMemory));
  EXPECT_TRUE(named.measured[0].gain_ratio.has_value());
  for (const SilentLoop& loop : SilentLoops("x")) {
    ProfileFigure figure;
    AddVerdicts({loop.verdict}, 1, figure);
    ASSERT_EQ(figure.measured.size(), 1u) << loop.what;
    EXPECT_EQ(figure.measured[0].bound, BoundName(Bound::kUnknown)) << loop.what;
    EXPECT_EQ(figure.measured[0].gain_ratio.has_value(), loop.priced) << loop.what;
    if (loop.why != Silence::kRanksDiffer) {
      EXPECT_EQ(figure.measured[0].level, DataLevelName(DataLevel::kUnknown)) << loop.what;
    }
  }
}

class FiguresTest : public PipelineFixture {};

TEST_F(FiguresTest, AgentsThatLeftAreStillKnown) {
  const uint64_t a = Connect("a");
  const uint64_t b = Connect("b");
  AgentHealth health;
  health.can_inject = true;
  pipeline_->Heartbeat(a, health);
  pipeline_->Heartbeat(b, health);
  EXPECT_EQ(pipeline_->Figures().agents_can_inject, 2u);
  pipeline_->AgentGone(a);
  const DaemonFigures figures = pipeline_->Figures();
  EXPECT_EQ(figures.agents_known, 2u);
  EXPECT_EQ(figures.agents_connected, 1u);
  EXPECT_EQ(figures.agents_can_inject, 1u);
  EXPECT_EQ(figures.agents.size(), 1u);
  EXPECT_TRUE(figures.store.readable);
}

TEST_F(FiguresTest, AgentsAreCountedByVersionUpToABound) {
  for (int i = 0; i < 20; ++i) {
    AgentFacts facts;
    facts.node = "n" + std::to_string(i);
    facts.stream_id = "stream-" + facts.node;
    facts.version = i < 2 ? "v0" : "v" + std::to_string(i);
    ASSERT_TRUE(pipeline_->AgentConnected(facts, std::make_shared<NotingLink>()).ok());
  }
  const DaemonFigures figures = pipeline_->Figures();
  const std::map<std::string, uint64_t> versions(figures.agent_versions.begin(),
                                                 figures.agent_versions.end());
  ASSERT_EQ(versions.size(), 17u);
  EXPECT_EQ(versions.at("v0"), 2u);
  EXPECT_EQ(versions.at("other"), 3u);  // of 19 versions 16 are told apart
  for (const auto& [version, count] : versions) {
    if (version.size() < 4 && version != "v0") {
      EXPECT_EQ(count, 1u) << version;
    }
  }
}

}  // namespace
}  // namespace perfd::daemon
