#include "agent/experiment/steps/live_steps.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "agent/experiment/loop/in_situ.h"
#include "agent/experiment/plan/group_means.h"
#include "agent/experiment/steps/batch_step.h"
#include "core/analysis/cluster_median.h"

namespace perfd::agent {
namespace {

constexpr int64_t kLongestEntryCountNs = 3'200'000'000;
constexpr int32_t kLiveInstances = 15;
constexpr int32_t kLeastLive = 3;
constexpr double kMaybeShort = 4;  // first timings are too long
constexpr int32_t kBursts = 4;     // of live instances
constexpr int32_t kBurstInstances = 120;
constexpr absl::Duration kBetweenBursts = absl::Milliseconds(20);
constexpr int32_t kBurstBatches = 15;
constexpr uint64_t kLeastTurns = 4;
constexpr int32_t kMostBurst = 400;        // of all threads of a team
constexpr int64_t kBurstNs = 200'000'000;  // for one of them
constexpr int64_t kLeastRuns = 3;          // that a shadow must have room for

// Of the second half: while the branches of the copy that is timed are still unknown, a short instance takes several times as
// long as it does.
std::vector<uint64_t> SecondHalf(const std::vector<uint64_t>& burst) {
  return GroupMeans(std::span(burst).subspan(burst.size() / 2));
}

double Mean(const std::vector<uint64_t>& values) {
  const auto sum = static_cast<double>(std::accumulate(values.begin(), values.end(), uint64_t{0}));
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

uint64_t InstancesOfTeam(const LoopKnowledge& known, uint64_t timings) {
  const auto team = static_cast<uint64_t>(TeamOf(known));
  return (timings + team - 1) / team;
}

// Threads of a team are timed side by side, so that neighbours are mostly of one instance of it.
void AddLong(const LoopKnowledge& known, const std::vector<uint64_t>& ticks, LiveFindings& live) {
  live.times.clusters.resize(live.times.instances.size());
  const uint32_t next = live.times.clusters.empty() ? 0 : live.times.clusters.back() + 1;
  for (size_t i = 0; i < ticks.size(); ++i) {
    live.times.instances.push_back(ticks[i]);
    live.times.clusters.push_back(next +
                                  static_cast<uint32_t>(i) / static_cast<uint32_t>(TeamOf(known)));
  }
  live.times.timed = InstancesOfTeam(known, live.times.instances.size());
}

// In several bursts, since the job may be in another phase in each. Where calls are left out, a phase that calls in every pass
// has many entries and little to show: bursts of instances that are less than half as long as others do not count.
LiveTimes TimeShort(const LoopKnowledge& known, RankInjector& injector, const StepRoom& room) {
  std::vector<std::vector<uint64_t>> bursts;
  double longest = 0;
  for (int i = 0; i < kBursts; ++i) {
    if (i > 0) absl::SleepFor(kBetweenBursts);
    const int32_t count = std::min(kBurstInstances * TeamOf(known), kMostBurst);
    auto ticks =
        injector.TimeLive(known.setup.loop_to_inject, count, std::min(room.timeout_ns, kBurstNs));
    if (!ticks.ok()) return {};
    bursts.push_back(SecondHalf(*ticks));
    longest = std::max(longest, Mean(bursts.back()));
  }
  LiveTimes times;
  for (size_t i = 0; i < bursts.size(); ++i) {
    const std::vector<uint64_t>& burst = bursts[i];
    if (!known.installed.excluded_paths.empty() && 2 * Mean(burst) < longest) continue;
    times.instances.insert(times.instances.end(), burst.begin(), burst.end());
    times.clusters.insert(times.clusters.end(), burst.size(), static_cast<uint32_t>(i));
  }
  times.timed = InstancesOfTeam(known, kGroupInstances * times.instances.size());
  return times;
}

// As the shadow's batches are. None: the rank has no batch that can be timed, or a burst of them found nobody.
LiveTimes TimeBatches(const LoopKnowledge& known, RankInjector& injector, const StepRoom& room) {
  LiveTimes times;
  std::vector<double> exact;  // a turn may take few ticks
  uint64_t turns = 0;
  for (int i = 0; i < kBursts; ++i) {
    if (i > 0) absl::SleepFor(kBetweenBursts);
    const auto batches =
        injector.TimeLiveBatches(known.setup.loop_to_inject, kBurstBatches, known.batch.instances,
                                 std::min(room.timeout_ns, kBurstNs));
    if (!batches.ok()) return {};
    for (const LiveBatch& batch : *batches) {
      if (batch.turns < kLeastTurns) continue;  // begun where the loop around ends
      times.instances.push_back((batch.ticks + batch.turns / 2) / batch.turns);
      exact.push_back(static_cast<double>(batch.ticks) / static_cast<double>(batch.turns));
      times.clusters.push_back(static_cast<uint32_t>(i));
      turns += batch.turns;
    }
  }
  if (static_cast<int32_t>(times.instances.size()) < kLeastLive) return {};
  times.cycles = Median(exact);
  times.timed = InstancesOfTeam(known, turns);
  return times;
}

StepOutcome RefuseTooLong(const LoopKnowledge& known) {
  const double run_ms = static_cast<double>(RunNs(known)) / 1e6;
  return Ended(MeasureState::kRefused,
               absl::StrFormat(
                   "one instance takes %.0f ms; a shadow of three needs budget.shadow of %.0f ms",
                   run_ms, kLeastRuns * run_ms / kShadowShare));
}

}  // namespace

StepOutcome CountEntries(LoopKnowledge& known, RankInjector& injector, const StepRoom& room) {
  LiveFindings& live = known.live;
  const int64_t ns = std::max<int64_t>(1, std::min(live.next_count_ns, room.left_ns));
  const absl::StatusOr<EntryCount> count = injector.CountEntries(known.setup.loop_to_inject, ns);
  if (!count.ok()) return Failed(count.status());
  live.entries = *count;
  if (live.entries.team > 0) return Learned();
  live.next_count_ns *= 4;
  if (live.next_count_ns <= kLongestEntryCountNs) return {};
  return Ended(MeasureState::kNeverEntered, "no thread entered the loop while it was watched");
}

StepOutcome TimeLive(LoopKnowledge& known, RankInjector& injector, const StepRoom& room) {
  LiveFindings& live = known.live;
  auto ticks = injector.TimeLive(known.setup.loop_to_inject, kLiveInstances * TeamOf(known),
                                 room.timeout_ns);
  if (!ticks.ok()) return Failed(ticks.status());
  AddLong(known, *ticks, live);
  const double median = static_cast<double>(Median(live.times.instances));
  if (median < kMaybeShort * kShortNs * known.setup.ticks_per_ns) {
    LiveTimes short_ones = TimeShort(known, injector, room);
    if (!short_ones.instances.empty()) live.times = std::move(short_ones);
  }
  if (static_cast<int32_t>(live.times.instances.size()) < kLeastLive)
    return Failed(absl::UnavailableError("the loop is entered too rarely to be timed"));
  live.times.cycles = static_cast<double>(Median(live.times.instances));
  if (kLeastRuns * RunNs(known) > LongestShadowNs(known)) return RefuseTooLong(known);
  ChooseMode(known);
  ChooseBatch(known);
  if (known.batch.instances > 0) {
    LiveTimes batches = TimeBatches(known, injector, room);
    if (batches.cycles > 0) live.alone = std::exchange(live.times, std::move(batches));
  }
  return Learned();
}

}  // namespace perfd::agent
