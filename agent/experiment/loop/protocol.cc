#include "agent/experiment/loop/protocol.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "agent/experiment/plan/run_schedule.h"
#include "core/analysis/cluster_median.h"
#include "core/analysis/trip_classes.h"

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

constexpr double kNearBatch =
    0.10;  // repeated instances that are no farther from live are like live

bool IsTimed(const LoopKnowledge& known) {
  return known.live.times.cycles > 0 && known.runs.cycles > 0 && !known.runs.samples.empty();
}

// What one run of a thread reads and writes at most, in lines of the caches; 0: not known.
uint64_t SweptBytes(const LoopKnowledge& known) {
  if (!IsProbed(known) || known.batch.instances > 0) return 0;
  uint64_t touched = 0;
  for (const auto& [address, bytes] : known.probe.trace.touched) touched += bytes;
  const double lines = static_cast<double>(known.trips.counts.back()) *
                       static_cast<double>(known.probe.trace.references.size());
  const double each = static_cast<double>(touched) / ShadowTeam(known);
  return static_cast<uint64_t>(std::min(each, lines * kLineBytes));
}

std::vector<RunSpec> LearningRun(const LoopKnowledge& known) {
  if (!LearnsWrites(known)) return {};
  return {{.variant = kRefIndex, .restore = known.probe.trace.in_situ, .learn = true}};
}

constexpr double kFar = 0.1;  // from 1, with the whole interval on that side: worth a reason

CachesBefore CachesOf(Evict evict) {
  switch (evict) {
    case Evict::kNothing:
      return CachesBefore::kWarm;
    case Evict::kFirst:
      return CachesBefore::kL1Evicted;
    case Evict::kSecond:
      return CachesBefore::kL2Evicted;
    case Evict::kAll:
      return CachesBefore::kCold;
  }
  return CachesBefore::kUnknown;
}

// Of each run the thread in the middle, as live instances are of any thread.
std::vector<ClusterValue> ShadowCycles(const LoopKnowledge& known, absl::string_view base) {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<double>> runs;  // by shadow and order
  for (const RunSample& run : known.runs.samples) {
    const double cycles = run.cycles - ProbeCyclesOfRun(known);
    if (run.variant == base && run.status == RunOutcome::kOk && cycles > 0)
      runs[{run.shadow, run.order}].push_back(cycles);
  }
  std::vector<ClusterValue> values;
  for (auto& [at, threads] : runs) {
    std::sort(threads.begin(), threads.end());
    values.push_back({at.first, threads[threads.size() / 2]});
  }
  return values;
}

std::vector<ClusterValue> LiveCycles(const LiveFindings& live) {
  std::vector<ClusterValue> values;
  const bool grouped = live.times.clusters.size() == live.times.instances.size();
  for (size_t i = 0; i < live.times.instances.size(); ++i)
    values.push_back({grouped ? live.times.clusters[i] : static_cast<uint32_t>(i),
                      static_cast<double>(live.times.instances[i])});
  return values;
}

// One thread goes over more than its first level holds, as far as it was seen.
bool IsBeyondL1(const LoopKnowledge& known) {
  const uint64_t first = known.setup.evict_bytes[static_cast<size_t>(Evict::kFirst)];
  return first > 0 && SweptBytes(known) > first;
}

FidelityReason ReasonOf(const LoopKnowledge& known, const Fidelity& fidelity) {
  const bool faster = fidelity.high < 1 && fidelity.value < 1 - kFar;
  const bool slower = fidelity.low > 1 && fidelity.value > 1 + kFar;
  const bool evicts = known.protocol.evict != Evict::kNothing;
  if (known.in_situ.on) return FidelityReason::kUnknown;
  if (slower && known.batch.instances > 0) return FidelityReason::kBetween;
  if (slower && evicts) return FidelityReason::kColderCaches;
  // What was emptied did not bring it nearer to live, or would not have been found in these caches anyway.
  const bool compared =
      !known.protocol.natural && (known.protocol.evict_chosen || EvictionLevels(known).size() == 1);
  if (faster && !evicts && compared && IsBeyondL1(known)) return FidelityReason::kWarmerCaches;
  return FidelityReason::kUnknown;
}

bool WaitsForPlacements(const LoopKnowledge& known) {
  return known.protocol.new_placements && !known.protocol.placements_compared && IsTimed(known) &&
         std::log(known.runs.cycles / known.live.times.cycles) > kTooSlow;
}

bool SharesLines(const TraceSummary& trace) {
  return std::any_of(trace.references.begin(), trace.references.end(),
                     [](const TracedReference& reference) { return reference.shared; });
}

}  // namespace

bool MayUseNewPlacements(const LoopKnowledge& known) {
  return InstancesNs(known) >= kLeastNs && !CopyOf(known, kRefIndex).places.shifts.empty();
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
  return WaitsForPlacements(known) &&
         known.shadows.count >= known.runs.samples.front().shadow + kFirstShadows - 1;
}

bool NeedsEviction(const LoopKnowledge& known) {
  if (known.protocol.evict_chosen || !IsTimed(known)) return false;
  const double distant = known.batch.instances > 0 ? kDistantBatch : kDistantFidelity;
  return std::log(known.live.times.cycles / known.runs.cycles) > distant &&
         EvictionLevels(known).size() > 1;
}

// Emptying all caches takes far longer than a short instance: only where nothing less can be like live. A run that goes over
// more than emptying a level does leaves that level without anything of before by itself.
std::vector<Evict> EvictionLevels(const LoopKnowledge& known) {
  const bool unlike = std::log(known.live.times.cycles / known.runs.cycles) >= kUnlike;
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

Fidelity FidelityOf(const LoopKnowledge& known) {
  Fidelity fidelity;
  if (SharesLines(known.probe.trace)) fidelity.reason = FidelityReason::kSharedLines;
  if (known.live.times.cycles <= 0 || known.runs.cycles <= 0 ||
      known.runs.reduction.figures.empty())
    return fidelity;
  fidelity.value = known.runs.cycles / known.live.times.cycles;
  std::vector<ClusterValue> shadow = ShadowCycles(known, "REF");
  if (shadow.empty()) shadow = ShadowCycles(known, "REF_FTZ");
  const Ratio drawn = MedianQuotient(shadow, LiveCycles(known.live));
  // The medians of threads and of runs differ a little: the interval is laid around the value that decides.
  const double scale = drawn.value > 0 ? fidelity.value / drawn.value : 0;
  fidelity.low = scale * drawn.low;
  fidelity.high = scale * drawn.high;
  fidelity.live_instances = known.live.times.timed;
  fidelity.runs = static_cast<uint32_t>(shadow.size());
  std::set<uint32_t> shadows;
  for (const ClusterValue& run : shadow) shadows.insert(run.cluster);
  fidelity.shadows = static_cast<uint32_t>(shadows.size());
  // Successive runs find what the program has left in the caches, which has no name.
  if (!known.in_situ.on && !known.protocol.successive && !known.protocol.natural)
    fidelity.caches = CachesOf(known.protocol.evict);
  if (fidelity.reason == FidelityReason::kUnknown) fidelity.reason = ReasonOf(known, fidelity);
  return fidelity;
}

bool NeedsNatural(const LoopKnowledge& known) {
  const TraceSummary& trace = known.probe.trace;
  const bool possible = known.batch.instances == 0 && !known.protocol.natural_compared &&
                        IsTimed(known) && !trace.blind && !TripsVary(known.trips.counts);
  if (!possible || WaitsForPlacements(known) || NeedsEviction(known)) return false;
  const std::vector<RunSpec> runs = NaturalRuns(known);
  const int64_t least = (static_cast<int64_t>(runs.size()) + 1) * (PeriodNs(known) + RunNs(known)) +
                        ReadOnceNs(known, runs);
  return least < LongestShadowNs(known) &&
         std::abs(std::log(known.runs.cycles / known.live.times.cycles)) > kDistantFidelity;
}

std::vector<RunSpec> NaturalRuns(const LoopKnowledge& known) {
  const RunSpec run{.variant = kRefIndex, .restore = known.probe.trace.in_situ, .natural = true};
  return std::vector<RunSpec>(kNaturalWarmUps + kNaturalRuns, run);
}

int64_t NaturalWarmNs(const LoopKnowledge& known) {
  constexpr int64_t kWarmNs = 8'000'000, kManyArrivals = 32;
  return PeriodNs(known) <= kWarmNs / kManyArrivals ? kWarmNs : 0;
}

std::vector<std::pair<uint64_t, uint64_t>> ReadOnce(const LoopKnowledge& known,
                                                    const std::vector<RunSpec>& runs) {
  const auto natural =
      std::count_if(runs.begin(), runs.end(), [](const RunSpec& run) { return run.natural; });
  const auto successive =
      std::count_if(runs.begin(), runs.end(), [](const RunSpec& run) { return run.successive; });
  if (natural == 0 && successive == 0) return {};
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& [address, bytes] : known.probe.trace.touched) {
    // No array of a process is larger: what follows may be anything.
    constexpr uint64_t kMost = uint64_t{1} << 40;
    const uint64_t all = std::min(bytes, kMost) * (1 + static_cast<uint64_t>(successive));
    const uint64_t end = std::min(address + std::min(all, kMost), ~uint64_t{0} >> 1);
    if (!ranges.empty() && address <= ranges.back().first + ranges.back().second) {
      ranges.back().second = std::max(ranges.back().second, end - ranges.back().first);
    } else {
      ranges.emplace_back(address, end - address);
    }
  }
  return ranges;
}

int64_t ReadOnceNs(const LoopKnowledge& known, const std::vector<RunSpec>& runs) {
  constexpr uint64_t kPageBytes = 4096, kPageNs = 250;
  constexpr int64_t kLongestPart = 8;  // of a shadow's time (agent/shadow/payload/child.cc)
  uint64_t pages = 0;
  for (const auto& [address, bytes] : ReadOnce(known, runs)) pages += bytes / kPageBytes + 1;
  const bool natural =
      std::any_of(runs.begin(), runs.end(), [](const RunSpec& run) { return run.natural; });
  return std::min(static_cast<int64_t>(pages * kPageNs), known.setup.shadow_ns / kLongestPart) +
         (natural ? NaturalWarmNs(known) : 0);
}

bool NeedsSuccession(const LoopKnowledge& known) {
  const bool possible = known.batch.instances > 0 && IsProbed(known) &&
                        !known.probe.trace.in_situ && !known.probe.trace.blind &&
                        CopyOf(known, kRefIndex).places.turn != 0;
  if (!possible || known.protocol.succession_compared) return false;
  return known.live.times.cycles > 0 && known.runs.cycles > 0 &&
         std::abs(std::log(known.runs.cycles / known.live.times.cycles)) > kNearBatch;
}

std::vector<RunSpec> LookingAhead() {
  return {2, {.variant = kTraceIndex, .successive = true}};
}

std::vector<RunSpec> SuccessionRuns(const LoopKnowledge& known) {
  std::vector<RunSpec> runs = LookingAhead();
  for (int i = 0; i < kRepeatedRuns; ++i)
    runs.push_back({.variant = kRefIndex, .place = known.protocol.new_placements ? i : 0});
  // What was traced has been met already; a repeated run has sent them back to the entry.
  for (int i = 0; i < kSuccessiveWarmUps + kSuccessiveRuns; ++i)
    runs.push_back({.variant = kRefIndex, .successive = true});
  runs.insert(runs.end(), kAloneRuns, {.variant = kRefIndex, .successive = true, .instances = 1});
  return runs;
}

}  // namespace perfd::agent
