#include "core/analysis/jobs/history.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/unit/client/sample_report.h"
#include "tests/unit/client/sample_verdicts.h"

namespace perfd {
namespace {

HistoryLoop Loop(const std::string& id, const std::string& function, int line, double share,
                 double cycles = 0) {
  HistoryLoop loop;
  loop.id = id;
  loop.function = function;
  loop.file = "/src/app.c";
  loop.first_line = line;
  loop.module = "app";
  loop.depth = 1;
  loop.cpu = {share, {share - 0.01, share + 0.01}};
  loop.cycles = cycles;
  loop.cycles_min = cycles * 0.99;
  loop.iterations = cycles > 0 ? 100 : 0;
  return loop;
}

HistoryProfile Profile(int number, std::vector<HistoryLoop> loops) {
  HistoryProfile profile;
  profile.id = absl::StrCat("p-00000", number);
  profile.command = "app";
  profile.loops = std::move(loops);
  return profile;
}

VariantFigures Ref(double cycles, int32_t thread = kTeam) {
  VariantFigures figures;
  figures.variant = figures.base = "REF";
  figures.thread = thread;
  figures.cycles = cycles;
  figures.cycles_min = cycles - 10;
  figures.iterations = 128;
  return figures;
}

TEST(HistoryTest, AReportCutDown) {
  Report report = MeasuredReport();
  report.findings.verdicts[0].ranks[0].measurement.figures.push_back(Ref(7, 0));  // of one thread
  report.findings.verdicts[0].ranks[0].measurement.figures.push_back(Ref(2000));
  report.findings.verdicts[0].ranks[1].measurement.figures.push_back(Ref(1100));
  report.findings.verdicts[0].ranks[1].measurement.trips.decile = {1, 2, 3, 4, 5, 64, 65, 66, 67, 68, 69};
  report.status.spec.target = {};
  report.status.spec.target.slurm_job = 4712;
  const HistoryProfile profile = ToHistory(report);
  EXPECT_EQ(profile.id, "p-000042");
  EXPECT_EQ(profile.command, "lulesh2.0");
  EXPECT_EQ(profile.user, "alice");
  EXPECT_EQ(profile.job, "4712");
  EXPECT_EQ(profile.started_unix_ns, 1'700'000'001'000'000'000);
  EXPECT_EQ(profile.ranks, 2);
  EXPECT_EQ(profile.nodes, 1);
  EXPECT_EQ(profile.build, "abc123");
  ASSERT_EQ(profile.loops.size(), 2u);
  const HistoryLoop& loop = profile.loops[0];
  EXPECT_EQ(loop.function, "compute_forces");
  EXPECT_EQ(loop.module, "lulesh2.0");
  EXPECT_EQ(loop.cpu.share, 0.5);
  EXPECT_EQ(loop.bound, Bound::kMemory);
  EXPECT_EQ(loop.gain.value, 0.36);
  EXPECT_EQ(loop.cycles, 1100);  // the rank nearest to the summary's 1000
  EXPECT_EQ(loop.cycles_min, 1090);
  EXPECT_EQ(loop.iterations, 64);         // of its median instance
  EXPECT_EQ(profile.loops[1].cycles, 0);  // refused
  report.findings.verdicts[0].ranks[1].measurement.trips.instances = 0;
  EXPECT_EQ(ToHistory(report).loops[0].iterations, 128);  // of the runs
  EXPECT_EQ(ToHistory(SampleReport()).job, "4711");       // what the ranks say
}

TEST(HistoryTest, MostRanksDecideTheProgram) {
  Report report = SampleReport();
  report.ranks.resize(3, report.ranks[0]);
  report.ranks[0].info.command = "mpirun";
  EXPECT_EQ(ToHistory(report).command, "lulesh2.0");
  report.ranks.clear();
  EXPECT_EQ(ToHistory(report).command, "lulesh2.0");  // what was asked for
}

TEST(HistoryTest, KeepsTheHeaviestLoops) {
  Report report = SampleReport();
  report.loops.resize(kMaxHistoryLoops + 5, report.loops[0]);
  EXPECT_EQ(ToHistory(report).loops.size(), kMaxHistoryLoops);
}

TEST(HistoryTest, TheSameLoopInAnotherBuild) {
  const std::vector<HistoryProfile> profiles = {
      Profile(1, {Loop("aa", "f", 10, 0.5), Loop("bb", "g", 20, 0.3), Loop("cc", "h", 30, 0.1)}),
      // f by its id, g by its lines, h by being the only loop of its depth in h.
      Profile(2, {Loop("aa", "f", 11, 0.5), Loop("b2", "g", 20, 0.3), Loop("c2", "h", 35, 0.1)}),
      Profile(3, {Loop("a3", "f", 11, 0.6)}), Profile(4, {Loop("b4", "g", 20, 0.3)})};
  const std::vector<LoopSeries> series = LoopsOverTime(profiles);
  ASSERT_EQ(series.size(), 3u);
  EXPECT_EQ(series[0].newest->id, "a3");
  EXPECT_EQ(series[0].largest_share, 0.6);
  EXPECT_EQ(series[0].loops[3], nullptr);
  EXPECT_EQ(series[1].newest->id, "b4");
  EXPECT_EQ(series[1].loops[2], nullptr);
  EXPECT_EQ(series[2].newest->id, "c2");
  EXPECT_EQ(series[0].change.verdict, LevelVerdict::kTooFew);
}

TEST(HistoryTest, AnAmbiguousNameMatchesNothing) {
  const std::vector<HistoryProfile> profiles = {
      Profile(1, {Loop("aa", "f", 10, 0.5), Loop("bb", "f", 20, 0.3)}),
      Profile(2, {Loop("a2", "f", 15, 0.5), Loop("b2", "f", 25, 0.3)})};
  EXPECT_EQ(LoopsOverTime(profiles).size(), 4u);
}

TEST(HistoryTest, TimeIsComparedWhereItWasMeasured) {
  std::vector<HistoryProfile> profiles;
  for (int i = 0; i < 8; ++i) {
    // The share falls while an iteration takes longer: something else got slower still.
    profiles.push_back(Profile(i, {Loop("aa", "f", 10, i < 4 ? 0.5 : 0.3, i < 4 ? 1000 : 1500)}));
  }
  std::vector<LoopSeries> series = LoopsOverTime(profiles);
  ASSERT_EQ(series.size(), 1u);
  EXPECT_EQ(series[0].quantity, HistoryQuantity::kCyclesPerIteration);
  EXPECT_EQ(series[0].change.verdict, LevelVerdict::kUp);
  EXPECT_EQ(series[0].at[series[0].change.since], 4u);
  EXPECT_EQ(series[0].change.before, 10);
  EXPECT_EQ(series[0].change.after, 15);

  for (size_t i = 0; i < 3; ++i) profiles[i].loops[0].cycles = 0;  // five are too few
  series = LoopsOverTime(profiles);
  EXPECT_EQ(series[0].quantity, HistoryQuantity::kShare);
  EXPECT_EQ(series[0].change.verdict, LevelVerdict::kDown);

  for (HistoryProfile& profile : profiles) profile.loops[0].cycles = 1000;
  for (HistoryProfile& profile : profiles) profile.loops[0].iterations = 0;
  series = LoopsOverTime(profiles);
  EXPECT_EQ(series[0].quantity, HistoryQuantity::kCyclesPerEntry);
  EXPECT_EQ(series[0].change.verdict, LevelVerdict::kSteady);
}

TEST(HistoryTest, ALoopThatWasNotThereTookNothing) {
  std::vector<HistoryProfile> profiles;
  for (int i = 0; i < 6; ++i) profiles.push_back(Profile(i, {Loop("aa", "f", 10, 0.5)}));
  for (size_t i = 3; i < 6; ++i) profiles[i].loops.push_back(Loop("bb", "g", 20, 0.2));
  std::vector<LoopSeries> series = LoopsOverTime(profiles);
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series[1].change.verdict, LevelVerdict::kUp);
  EXPECT_EQ(series[1].change.before, 0);
  EXPECT_EQ(series[1].at[series[1].change.since], 3u);
  // Where a profile's loops were cut, it may have been among the others.
  for (size_t i = 0; i < 3; ++i) {
    for (int k = 0; profiles[i].loops.size() < kMaxHistoryLoops; ++k)
      profiles[i].loops.push_back(Loop(absl::StrCat("x", k), "x", 100 + k, 0.25));
  }
  series = LoopsOverTime(profiles);
  for (const LoopSeries& one : series) {
    if (one.newest->id == "bb") {
      EXPECT_EQ(one.change.verdict, LevelVerdict::kSteady);
    }
  }
}

TEST(HistoryTest, ElapsedTimeIsComparedOnlyWhereEveryProfileHasIt) {
  std::vector<HistoryProfile> profiles;
  for (int i = 0; i < 8; ++i) {
    profiles.push_back(Profile(i, {Loop("aa", "f", 10, 0.5, 0)}));
    const double wall = i < 4 ? 0.5 : 0.8;
    profiles.back().loops[0].wall = HistoryShare{wall, {wall - 0.01, wall + 0.01}};
  }
  std::vector<LoopSeries> series = LoopsOverTime(profiles);
  EXPECT_EQ(series[0].quantity, HistoryQuantity::kWallShare);
  EXPECT_EQ(series[0].change.verdict, LevelVerdict::kUp);
  profiles[0].loops[0].wall.reset();
  series = LoopsOverTime(profiles);
  EXPECT_EQ(series[0].quantity, HistoryQuantity::kShare);
  EXPECT_EQ(series[0].change.verdict, LevelVerdict::kSteady);
}

}  // namespace
}  // namespace perfd
