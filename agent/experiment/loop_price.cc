// What a LoopExperiment expects its next shadow to cost.
#include <algorithm>

#include "agent/experiment/loop_experiment.h"

namespace perfd::agent {
namespace {

constexpr double kMostRestoring = 0.05;  // of an instance's time
constexpr int64_t kProbeRuns = 4;        // REF, COUNT, and a TRACE that is cut short
constexpr double kMostWrittenPerNs =
    4;                             // bytes of a thread, into pages that it has not yet touched
constexpr int64_t kLeastRuns = 6;  // one variant between two runs of REF, warmed up and counted

}  // namespace

// Whole ranges are copied back before every run only where that takes little of its time.
bool LoopExperiment::Learns() const {
  return trace_.in_situ && static_cast<double>(RestoreNs()) > kMostRestoring * InstancesNs();
}

double LoopExperiment::InstanceNs() const {
  const double cycles = std::max(run_cycles_, live_cycles_);
  return setup_.ticks_per_ns > 0 ? cycles / setup_.ticks_per_ns : cycles;
}

// Of a shadow, as it is planned.
int64_t LoopExperiment::LongestNs() const {
  return static_cast<int64_t>(kShadowShare * static_cast<double>(setup_.shadow_ns));
}

// Of all instances that one run goes on over.
double LoopExperiment::InstancesNs() const {
  return InstanceNs() * static_cast<double>(std::max<uint64_t>(1, instances_));
}

// Of memory. What an instance writes is traced; before that, no more than its time allows it to.
uint64_t LoopExperiment::MostWritten() const {
  if (stage_ == Stage::kMeasure) return trace_.written_bytes;
  const std::vector<Reference>& references = CopyOf(kTraceIndex).references;
  if (std::none_of(references.begin(), references.end(), [](const auto& r) { return r.writes; }))
    return 0;
  const double ns = std::min(InstancesNs(), static_cast<double>(setup_.shadow_ns));
  return static_cast<uint64_t>(std::max(0.0, ns) * kMostWrittenPerNs *
                               std::max(1, entry_count_.team));
}

// Copying back moves two bytes for each, comparing reads as many; some 4 GB/s.
int64_t LoopExperiment::RestoreNs() const {
  return static_cast<int64_t>(trace_.written_bytes / 2);
}

int64_t LoopExperiment::RunNs() const {
  double ns = InstancesNs() + static_cast<double>(EvictNs(evict_));
  if (trace_.in_situ && !Learns()) ns += static_cast<double>(RestoreNs());
  return std::max<int64_t>(1000, static_cast<int64_t>(ns));
}

int64_t LoopExperiment::FixedCost(const ShadowPrediction& prediction) const {
  const double mb = static_cast<double>(trace_.written_bytes) / (1 << 20);
  const double copies =
      mb * static_cast<double>(prediction.copy_ns_per_mb) * (trace_.in_situ ? 2 : 1);
  return prediction.fork_ns + prediction.later_fault_ns + static_cast<int64_t>(copies);
}

int64_t LoopExperiment::PredictedNs(const ShadowPrediction& prediction, size_t runs) const {
  return FixedCost(prediction) + static_cast<int64_t>(runs) * RunNs();
}

int64_t LoopExperiment::LeastCost(const ShadowPrediction& prediction) const {
  if (stage_ != Stage::kProbe && stage_ != Stage::kMeasure) return 0;
  if (in_situ_) return LeastInSitu();
  if (NeedsPlacements()) return FixedCost(prediction) + PlacesNs();
  if (NeedsProtocol()) return FixedCost(prediction) + ProtocolNs();
  const int64_t runs = stage_ == Stage::kProbe ? kProbeRuns : kLeastRuns;
  return FixedCost(prediction) + runs * RunNs();
}

int64_t LoopExperiment::RoundCost(const ShadowPrediction& prediction) const {
  const int64_t least = LeastCost(prediction);
  if (stage_ != Stage::kMeasure || in_situ_ || NeedsPlacements() || NeedsProtocol()) return least;
  std::vector<int32_t> variants;
  for (const std::string& name : Missing()) variants.push_back(IndexOf(name));
  const size_t checks = TripChecks(variants).size();
  const auto runs = static_cast<int64_t>(kWarmUps + 2 * variants.size() + 2);  // REF, and COUNT
  int64_t all = (runs + kCountedRuns * static_cast<int64_t>(checks)) * RunNs();
  if (Learns()) all += static_cast<int64_t>(2 * variants.size()) * (RunNs() + 2 * RestoreNs());
  const int64_t longest = LongestNs();
  return std::max(least, FixedCost(prediction) + std::min(longest, all));
}

}  // namespace perfd::agent
