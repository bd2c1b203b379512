#include "agent/experiment/loop/protocol.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "agent/experiment/plan/run_schedule.h"

namespace perfd::agent {
namespace {

constexpr double kLeastNs =
    20'000;                  // of a run: shorter ones would mostly fetch the code of a new place
constexpr int kOneRuns = 4;  // at one place: then its branches are known
constexpr int kNewRuns = 3;
constexpr uint32_t kFirstShadows = 3;  // one may have met an instance that is longer than others

constexpr double kDistantFidelity = 0.10;  // farther from live than this: try the other protocols
constexpr double kDistantBatch =
    0.20;  // the same of a batch: short instances scatter more, live above all
constexpr double kMostEvicting = 100;  // instances that one eviction may cost ...
constexpr double kUnlike = 0.69;       // ... unless warm is half of live (ln 2), or less
constexpr double kLineBytes = 64;
constexpr int kRunsEach = 2;  // the first one also brings the buffer in: the last one counts

bool IsTimed(const LoopKnowledge& known) {
  return known.live.cycles > 0 && known.runs.cycles > 0 && !known.runs.samples.empty();
}

// What one run of a thread reads and writes at most, in lines of the caches; 0: not known.
uint64_t SweptBytes(const LoopKnowledge& known) {
  if (!IsProbed(known) || known.batch.instances > 0) return 0;
  uint64_t touched = 0;
  for (const auto& [address, bytes] : known.probe.trace.touched) touched += bytes;
  const double lines = static_cast<double>(known.trips.counts.back()) *
                       static_cast<double>(known.probe.trace.references.size());
  const double each = static_cast<double>(touched) / TeamOf(known);
  return static_cast<uint64_t>(std::min(each, lines * kLineBytes));
}

std::vector<RunSpec> LearningRun(const LoopKnowledge& known) {
  if (!LearnsWrites(known)) return {};
  return {{.variant = kRefIndex, .restore = known.probe.trace.in_situ, .learn = true}};
}

}  // namespace

bool MayUseNewPlacements(const LoopKnowledge& known) {
  return InstancesNs(known) >= kLeastNs && !CopyOf(known, kRefIndex).shifts.empty();
}

void Place(const LoopKnowledge& known, std::vector<RunSpec>& runs) {
  std::map<int32_t, int32_t> next;
  for (RunSpec& run : runs) run.place = known.protocol.new_placements ? next[run.variant]++ : 0;
}

std::vector<RunSpec> PlacementRuns(const LoopKnowledge& known) {
  const bool restore = known.probe.trace.in_situ;
  std::vector<RunSpec> runs = LearningRun(known);
  for (int i = 0; i < kOneRuns; ++i) runs.push_back({.variant = kRefIndex, .restore = restore});
  for (int i = 0; i < (known.protocol.new_placements ? kNewRuns : 0); ++i)
    runs.push_back({.variant = kRefIndex, .place = 1 + i, .restore = restore});
  return runs;
}

// Where the same data come every time, the rank's branches are learnt as well, and runs at new places take longer than live.
bool NeedsPlacements(const LoopKnowledge& known) {
  if (!known.protocol.new_placements || known.protocol.placements_compared || !IsTimed(known))
    return false;
  if (known.shadows.count < known.runs.samples.front().shadow + kFirstShadows - 1) return false;
  return std::log(known.runs.cycles / known.live.cycles) > kTooSlow;
}

bool NeedsEviction(const LoopKnowledge& known) {
  if (known.protocol.evict_chosen || !IsTimed(known)) return false;
  const double distant = known.batch.instances > 0 ? kDistantBatch : kDistantFidelity;
  return std::log(known.live.cycles / known.runs.cycles) > distant &&
         EvictionLevels(known).size() > 1;
}

// Emptying all caches takes far longer than a short instance: only where nothing less can be like live. A run that goes over
// more than emptying a level does leaves that level without anything of before by itself.
std::vector<Evict> EvictionLevels(const LoopKnowledge& known) {
  const bool unlike = std::log(known.live.cycles / known.runs.cycles) >= kUnlike;
  const uint64_t swept = SweptBytes(known);
  std::vector<Evict> levels = {Evict::kNothing};
  for (const Evict level : {Evict::kFirst, Evict::kSecond, Evict::kAll}) {
    const uint64_t bytes = known.setup.evict_bytes[static_cast<size_t>(level)];
    const bool empty_anyway = bytes > 0 && swept >= bytes;
    const bool payable = level == Evict::kFirst || unlike ||
                         kMostEvicting * InstanceNs(known) >= static_cast<double>(EvictNs(level));
    if (payable && !empty_anyway) levels.push_back(level);
  }
  return levels;
}

std::vector<RunSpec> EvictionRuns(const LoopKnowledge& known) {
  const bool restore = known.probe.trace.in_situ;
  std::vector<RunSpec> runs = LearningRun(known);
  for (int i = 0; i < kWarmUps; ++i) runs.push_back({.variant = kRefIndex, .restore = restore});
  for (const Evict level : EvictionLevels(known)) {
    for (int i = 0; i < kRunsEach; ++i)
      runs.push_back({.variant = kRefIndex, .evict = level, .restore = restore});
  }
  return runs;
}

}  // namespace perfd::agent
