// core/analysis/injection_total.h - what the injections of a profile added to the job's wall time.
//
// Shape    PauseSet: spans of time as a union, so that pauses of the ranks of one node that overlap count once. Adding is
//          commutative, associative and idempotent up to kMaxSpans disjoint spans; what comes later adds its full length.
//          Pauses of several nodes: job_pauses.h.
// Units    ns; spans in ns since the epoch of the node's clock.
// Threads  thread-compatible.
// Source   promise P4: "summed over ranks where they do not overlap".
#ifndef CORE_ANALYSIS_INJECTION_TOTAL_H_
#define CORE_ANALYSIS_INJECTION_TOTAL_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/loop_verdict.h"

namespace perfd {

struct PauseSpan {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;  // exclusive

  bool operator==(const PauseSpan&) const = default;
};

class JobPauses;

class PauseSet {
 public:
  static constexpr size_t kMaxSpans = 65'536;

  // Nothing for an empty or reversed span.
  void Add(int64_t begin_ns, int64_t end_ns);
  void Merge(const PauseSet& other);
  int64_t TotalNs() const;

  // Sorted, disjoint, not touching.
  const std::vector<PauseSpan>& spans() const { return spans_; }
  int64_t overflow_ns() const { return overflow_ns_; }
  // Time that is in no span.
  void AddOverflow(int64_t ns);
  bool operator==(const PauseSet&) const = default;

 private:
  std::vector<PauseSpan> spans_;
  int64_t overflow_ns_ = 0;
};

// Sums end here (2.3 years in ns), so that no foreign figure makes them overflow; also the largest that crosses the wire.
inline constexpr int64_t kMostCost = int64_t{1} << 56;

// Adds `cost`; the longest stop and pause are maxima.
void AddCost(const InjectionCost& cost, InjectionCost& sum);

// `audited_ns`: the sum of all pauses that went into `pauses`. Pauses of the measurements beyond it are not on record: they
// are added in full. `elapsed_ns` 0: no ratio.
InjectionTotal TotalInjection(std::span<const LoopMeasurement* const> loops,
                              const JobPauses& pauses, int64_t audited_ns, int64_t elapsed_ns);

}  // namespace perfd

#endif  // CORE_ANALYSIS_INJECTION_TOTAL_H_
