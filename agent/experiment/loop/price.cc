#include "agent/experiment/loop/price.h"

#include <algorithm>

#include "agent/experiment/loop/apart.h"
#include "agent/experiment/loop/in_situ.h"
#include "agent/experiment/loop/protocol.h"
#include "agent/experiment/loop/trip_checks.h"
#include "agent/experiment/plan/run_schedule.h"

namespace perfd::agent {
namespace {

constexpr int64_t kProbeRuns = 4;  // REF, COUNT, and a TRACE that is cut short
constexpr double kMostWrittenPerNs =
    4;  // bytes of a thread, into pages that it has not yet touched
constexpr double kUsualSuccession = 40;  // runs of a shadow, each of which writes elsewhere
constexpr int64_t kLeastRuns = 6;  // one variant between two runs of REF, warmed up and counted

// Of a shadow under the protocol that was chosen.
std::vector<RunSpec> UsualRuns(const LoopKnowledge& known) {
  const auto runs = static_cast<size_t>(known.protocol.successive ? kUsualSuccession : 1);
  return std::vector<RunSpec>(
      runs, {.successive = known.protocol.successive, .natural = known.protocol.natural});
}

}  // namespace

int64_t RoundNs(const LoopKnowledge& known) {
  return RunNs(known) + (known.protocol.natural ? PeriodNs(known) : 0);
}

int64_t FixedCost(const LoopKnowledge& known, const ShadowPrediction& prediction) {
  const TraceSummary& trace = known.probe.trace;
  const double mb = static_cast<double>(trace.written_bytes) / (1 << 20) *
                    (known.protocol.successive ? kUsualSuccession : 1);
  const double copies =
      mb * static_cast<double>(prediction.copy_ns_per_mb) * (trace.in_situ ? 2 : 1);
  return prediction.fork_ns + prediction.later_fault_ns + static_cast<int64_t>(copies) +
         ReadOnceNs(known, UsualRuns(known));
}

int64_t ComparingNs(const LoopKnowledge& known, const std::vector<RunSpec>& runs) {
  int64_t ns = LearnsWrites(known) ? 2 * RestoreNs(known) : 0;
  ns += ReadOnceNs(known, runs);
  for (const RunSpec& run : runs)
    ns += RunNs(known) + EvictNs(run.evict) + (run.natural ? PeriodNs(known) : 0);
  return ns;
}

int64_t LookingAheadNs(const LoopKnowledge& known) {
  return static_cast<int64_t>(LookingAhead().size()) * kTracedRuns * RunNs(known);
}

// What an instance writes is traced; before that, no more than its time allows it to.
uint64_t MostWritten(const LoopKnowledge& known) {
  // The code around may write anything.
  if (known.protocol.natural || NeedsNatural(known)) return ~uint64_t{0};
  const bool elsewhere = known.protocol.successive || NeedsSuccession(known);
  if (IsProbed(known))
    return known.probe.trace.written_bytes * static_cast<uint64_t>(elsewhere ? kMostScheduled : 1);
  const std::vector<Reference>& references = CopyOf(known, kTraceIndex).references;
  if (std::none_of(references.begin(), references.end(), [](const auto& r) { return r.writes; }))
    return 0;
  const double ns = std::min(InstancesNs(known), static_cast<double>(known.setup.shadow_ns));
  return static_cast<uint64_t>(std::max(0.0, ns) * kMostWrittenPerNs * ShadowTeam(known));
}

int64_t LeastCost(const LoopKnowledge& known, Phase phase, const ShadowPrediction& prediction) {
  switch (phase) {
    case Phase::kEntryCount:
    case Phase::kLive:
    case Phase::kDone:
      return 0;
    case Phase::kInSitu:
      return LeastInSituNs(known);
    case Phase::kPlacement:
      return FixedCost(known, prediction) + ComparingNs(known, PlacementRuns(known));
    case Phase::kEviction:
      return FixedCost(known, prediction) + ComparingNs(known, EvictionRuns(known));
    case Phase::kNatural:
      return FixedCost(known, prediction) + ComparingNs(known, NaturalRuns(known));
    case Phase::kSuccession:
      return FixedCost(known, prediction) + ComparingNs(known, SuccessionRuns(known)) +
             LookingAheadNs(known);
    case Phase::kProbe:
      return FixedCost(known, prediction) + kProbeRuns * RunNs(known);
    case Phase::kBatch:
    case Phase::kMeasure:
      return FixedCost(known, prediction) + kLeastRuns * RoundNs(known);
  }
  return 0;
}

int64_t RoundCost(const LoopKnowledge& known, Phase phase, const ShadowPrediction& prediction) {
  const int64_t least = LeastCost(known, phase, prediction);
  if (phase != Phase::kMeasure && phase != Phase::kBatch) return least;
  std::vector<int32_t> variants;
  for (const std::string& name : known.runs.missing) variants.push_back(IndexOf(known, name));
  const size_t checks = TripChecks(known, variants).size();
  const int warm_ups = known.protocol.successive ? kSuccessiveWarmUps : kWarmUps;
  const auto runs = static_cast<int64_t>(static_cast<size_t>(warm_ups) + 2 * variants.size() +
                                         2);  // REF, and COUNT
  const size_t traced = AddressChecks(known, variants).size();
  int64_t all = (runs + kCountedRuns * static_cast<int64_t>(checks) +
                 kTracedRuns * static_cast<int64_t>(traced)) *
                RunNs(known);
  if (known.protocol.natural) all += runs * PeriodNs(known);
  if (known.protocol.successive) all += LookingAheadNs(known);
  if (LearnsWrites(known))
    all += static_cast<int64_t>(2 * variants.size()) * (RunNs(known) + 2 * RestoreNs(known));
  return std::max(least, FixedCost(known, prediction) + std::min(LongestShadowNs(known), all));
}

}  // namespace perfd::agent
