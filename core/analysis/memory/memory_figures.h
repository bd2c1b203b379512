// core/analysis/memory/memory_figures.h - sampled accesses -> their figures, without windows. Pure.
//
// Shape    MemoryTally: Add samples, then Figures().
// Rules    beyond_share.h; samples of one thread within a second are a cluster.
// Units    see memory_report.h.
#ifndef CORE_ANALYSIS_MEMORY_MEMORY_FIGURES_H_
#define CORE_ANALYSIS_MEMORY_MEMORY_FIGURES_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "core/model/memory/load_times.h"
#include "core/model/memory/memory_profile.h"
#include "core/model/memory/memory_report.h"

namespace perfd {

// Some access says how its page was found.
inline bool TellsOfTlb(const MemoryProfile& profile) {
  return profile.tlb[static_cast<size_t>(TlbResult::kUnknown)].samples < profile.all.samples;
}

class MemoryTally {
 public:
  void Add(const SampledAccess& sample);
  MemoryFigures Figures() const;

 private:
  BeyondShare Share(size_t border) const;

  MemoryProfile profile_;
  // By thread and second; what falls together is one cluster, so that there are 65,536 at most.
  absl::flat_hash_map<uint16_t, LoadTimes> clusters_;
};

}  // namespace perfd

#endif  // CORE_ANALYSIS_MEMORY_MEMORY_FIGURES_H_
