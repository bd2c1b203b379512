#include "agent/experiment/loop/phase.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "agent/experiment/loop/price.h"
#include "agent/experiment/loop/protocol.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A loop with one variant, of which nothing is known yet.
LoopKnowledge Fresh() {
  LoopKnowledge known;
  known.setup.asked = {"LS"};
  known.setup.ticks_per_ns = 1;
  known.setup.shadow_ns = 500'000'000;
  known.installed.names = {SingleVariant(Change::kRef), SingleVariant(Change::kCount),
                           SingleVariant(Change::kTrace), SingleVariant(Change::kLs)};
  known.installed.copies.resize(4);
  return known;
}

LoopKnowledge Counted() {
  LoopKnowledge known = Fresh();
  known.live.entries.team = 2;
  return known;
}

LoopKnowledge Timed() {
  LoopKnowledge known = Counted();
  known.live.times.cycles = 100'000;
  known.live.times.instances = {100'000};
  known.runs.missing = {"LS"};
  return known;
}

LoopKnowledge Probed() {
  LoopKnowledge known = Timed();
  known.trips.counts = {1000};
  known.runs.cycles = 100'000;
  known.shadows.count = 1;
  return known;
}

LoopKnowledge Measured() {
  LoopKnowledge known = Probed();
  known.runs.samples.push_back({.shadow = 2, .variant = "LS", .cycles = 1000});
  known.shadows.count = 4;
  return known;
}

struct Row {
  const char* what;
  LoopKnowledge (*begin)();
  std::function<void(LoopKnowledge&)> change;
  Phase phase;
};

TEST(PhaseTest, WhatIsKnownSaysWhatComesNext) {
  const auto nothing = [](LoopKnowledge&) {};
  const std::vector<Row> rows = {
      {"nothing", Fresh, nothing, Phase::kEntryCount},
      {"a team", Counted, nothing, Phase::kLive},
      {"a length", Timed, nothing, Phase::kProbe},
      {"a probe", Probed, nothing, Phase::kMeasure},
      {"all of it", Measured, [](auto& k) { k.runs.missing.clear(); }, Phase::kDone},
      {"nothing to measure", Probed, [](auto& k) { k.runs.missing.clear(); }, Phase::kDone},
      {"few instances", Measured,
       [](auto& k) {
         k.runs.missing.clear();
         k.runs.missing_instances = {"LS"};
       },
       Phase::kMeasure},
      {"a batch that was not timed", Probed,
       [](auto& k) {
         k.batch.instances = 100;
         k.runs.cycles = 0;
       },
       Phase::kBatch},
      {"a batch that is unlike live", Probed,
       [](auto& k) {
         k.live.times.cycles = 300'000;
         k.batch.instances = 100;
         k.installed.batched.assign(4, k.installed.copies[0]);
         k.installed.batched[0]->places.turn = 1;
       },
       Phase::kSuccession},
      {"the same, and both ways were compared", Probed,
       [](auto& k) {
         k.live.times.cycles = 300'000;
         k.batch.instances = 100;
         k.installed.batched.assign(4, k.installed.copies[0]);
         k.installed.batched[0]->places.turn = 1;
         k.protocol.succession_compared = true;
       },
       Phase::kMeasure},
      {"live is slower", Measured, [](auto& k) { k.live.times.cycles = 130'000; },
       Phase::kEviction},
      {"live is slower, before any run", Probed, [](auto& k) { k.live.times.cycles = 130'000; },
       Phase::kMeasure},
      {"live is slower, whatever is emptied", Measured,
       [](auto& k) {
         k.live.times.cycles = 130'000;
         k.protocol.evict_chosen = true;
       },
       Phase::kMeasure},
      {"a batch scatters more", Measured,
       [](auto& k) {
         k.live.times.cycles = 115'000;
         k.batch.instances = 100;
       },
       Phase::kMeasure},
      {"live is faster at new places", Measured,
       [](auto& k) {
         k.live.times.cycles = 80'000;
         k.protocol.new_placements = true;
       },
       Phase::kPlacement},
      {"live is faster", Measured, [](auto& k) { k.live.times.cycles = 80'000; }, Phase::kMeasure},
      {"both were compared", Measured,
       [](auto& k) {
         k.live.times.cycles = 80'000;
         k.protocol.new_placements = k.protocol.placements_compared = true;
       },
       Phase::kMeasure},
      {"two shadows are too few to compare", Measured,
       [](auto& k) {
         k.live.times.cycles = 80'000;
         k.protocol.new_placements = true;
         k.shadows.count = 3;
       },
       Phase::kMeasure},
      {"recovery mode", Timed, [](auto& k) { k.in_situ.on = true; }, Phase::kInSitu},
      {"recovery mode, all of it", Timed,
       [](auto& k) {
         k.in_situ.on = true;
         k.shadows.count = 1;
         k.runs.missing.clear();
       },
       Phase::kDone},
      {"64 shadows", Measured, [](auto& k) { k.shadows.count = 64; }, Phase::kDone},
      {"63 shadows", Measured, [](auto& k) { k.shadows.count = 63; }, Phase::kMeasure},
  };
  for (const Row& row : rows) {
    LoopKnowledge known = row.begin();
    row.change(known);
    EXPECT_EQ(PhaseOf(known), row.phase) << row.what;
    const Position next = Next(known, {.phase = Phase::kMeasure, .failures = 3}, Learned());
    EXPECT_EQ(next.phase, row.phase) << row.what;
    EXPECT_EQ(next.failures, 0) << row.what;
    EXPECT_EQ(next.state, row.phase == Phase::kDone ? MeasureState::kMeasured : MeasureState::kOpen)
        << row.what;
  }
}

TEST(PhaseTest, WhatPassesIsTriedAgainAndNoMore) {
  const LoopKnowledge known = Probed();
  Position at = {.phase = Phase::kMeasure};
  for (int i = 1; i < kMostFailures; ++i) {
    at = Next(known, at, Failed(absl::UnavailableError("not now")));
    EXPECT_EQ(at.phase, Phase::kMeasure);
    EXPECT_EQ(at.failures, i);
  }
  const Position end = Next(known, at, Failed(absl::DeadlineExceededError("not in time")));
  EXPECT_EQ(end.phase, Phase::kDone);
  EXPECT_EQ(end.state, MeasureState::kOpen);
  EXPECT_EQ(end.reason, "not in time");
}

TEST(PhaseTest, WhatWillNotChangeRefusesAtOnce) {
  const Position now = {.phase = Phase::kProbe};
  const Position end = Next(Timed(), now, Failed(absl::FailedPreconditionError("it has a JIT")));
  EXPECT_EQ(end.phase, Phase::kDone);
  EXPECT_EQ(end.state, MeasureState::kRefused);
  EXPECT_EQ(end.reason, "it has a JIT");
  const Position gone = Next(Timed(), now, Failed(absl::NotFoundError("no such process")));
  EXPECT_THAT(gone.reason, StartsWith("the process has ended"));
  EXPECT_THAT(gone.reason, HasSubstr("no such process"));
}

TEST(PhaseTest, NothingHappensWhereNothingWasTriedOrItWasCancelled) {
  const Position now = {.phase = Phase::kProbe, .failures = 2};
  for (const StepOutcome& outcome :
       {StepOutcome{}, Failed(absl::CancelledError("the disable file"))}) {
    const Position next = Next(Timed(), now, outcome);
    EXPECT_EQ(next.phase, now.phase);
    EXPECT_EQ(next.failures, now.failures);
  }
}

TEST(PhaseTest, AnEndOfFurtherInstancesLeavesTheLoopMeasured) {
  LoopKnowledge known = Measured();
  const Position now = {.phase = Phase::kMeasure};
  const StepOutcome end = Ended(MeasureState::kOpen, "too dear");
  EXPECT_EQ(Next(known, now, end).state, MeasureState::kOpen) << "LS is missing";
  EXPECT_EQ(Next(known, now, end).reason, "too dear");
  known.runs.missing.clear();
  EXPECT_EQ(Next(known, now, end).state, MeasureState::kMeasured);
  EXPECT_EQ(Next(known, now, end).reason, "");
  EXPECT_EQ(Next(known, {.phase = Phase::kProbe}, end).state, MeasureState::kOpen)
      << "a loop that is probed anew has nothing";
  known.runs.samples.clear();
  EXPECT_EQ(Next(known, now, end).state, MeasureState::kOpen) << "nothing has run";
}

TEST(PhaseTest, WhatABatchCannotHaveIsNoFaultOfTheLoop) {
  LoopKnowledge known = Measured();
  EXPECT_EQ(RefusedHere(known, "it forks").kind, StepOutcome::Kind::kEnded);
  known.batch.instances = 100;
  known.trim = {.misses = 1, .failures = 2, .guess_failures = 1, .record = ""};
  EXPECT_EQ(RefusedHere(known, "it is left").kind, StepOutcome::Kind::kLearned);
  EXPECT_EQ(PhaseOf(known), Phase::kProbe);
  EXPECT_EQ(known.batch.instances, 0u);
  ASSERT_EQ(known.batch.refusals.size(), 1u);
  EXPECT_THAT(known.batch.refusals[0].reason, HasSubstr("it is left"));
  EXPECT_EQ(known.runs.cycles, 0);
  EXPECT_TRUE(known.runs.samples.empty());
  EXPECT_EQ(known.trim.misses, 0);
  EXPECT_EQ(known.trim.failures, 0);
  EXPECT_EQ(known.trim.guess_failures, 1) << "of probes";
}

TEST(PhaseTest, StagesAreTheOrderOfSchedules) {
  EXPECT_LT(StageOf(Phase::kEntryCount), StageOf(Phase::kLive));
  EXPECT_LT(StageOf(Phase::kLive), StageOf(Phase::kProbe));
  EXPECT_LT(StageOf(Phase::kProbe), StageOf(Phase::kBatch));
  for (const Phase phase : {Phase::kPlacement, Phase::kEviction, Phase::kMeasure, Phase::kInSitu})
    EXPECT_EQ(StageOf(phase), StageOf(Phase::kBatch));
  EXPECT_LT(StageOf(Phase::kMeasure), StageOf(Phase::kDone));
}

TEST(RoundNs, ANaturalRunIsPricedWithTheWayToIt) {
  LoopKnowledge known = Timed();
  known.live.entries = {.team = 1, .entries_per_second = 100};
  const int64_t alone = RoundNs(known);
  EXPECT_LT(alone, 1'000'000);
  known.protocol.natural = true;
  EXPECT_EQ(RoundNs(known), alone + 10'000'000);
}

TEST(ReadOnce, WhatRunsTouchThatNothingHasPrepared) {
  using Ranges = std::vector<std::pair<uint64_t, uint64_t>>;
  LoopKnowledge known;
  known.probe.trace.touched = {{0x10000, 0x1000}, {0x40000, 0x2000}};
  EXPECT_EQ(ReadOnce(known, std::vector<RunSpec>(3)), Ranges()) << "repeated runs have been there";
  RunSpec natural, successive;
  natural.natural = true;
  successive.successive = true;
  EXPECT_EQ(ReadOnce(known, {natural, natural}), known.probe.trace.touched);
  EXPECT_EQ(ReadOnce(known, {successive, successive}),
            (Ranges{{0x10000, 0x3000}, {0x40000, 0x6000}}));
  EXPECT_EQ(ReadOnce(known, std::vector<RunSpec>(63, successive)), (Ranges{{0x10000, 0xb0000}}))
      << "they meet";
  known.probe.trace.touched = {{uint64_t{1} << 62, uint64_t{1} << 63}};
  const Ranges most = ReadOnce(known, {successive});
  ASSERT_EQ(most.size(), size_t{1});
  EXPECT_LE(most[0].second, uint64_t{1} << 40);
  known.setup.shadow_ns = 80'000'000;
  EXPECT_EQ(ReadOnceNs(known, {successive}), 10'000'000) << "it is given up after an eighth";
}

}  // namespace
}  // namespace perfd::agent
