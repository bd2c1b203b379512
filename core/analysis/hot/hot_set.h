// core/analysis/hot/hot_set.h - the few loops worth looking at.
//
// Shape    compute loops by their own time, without that of the loops in their bodies, heaviest first, until their sum exceeds
//          `coverage` of the loop time; a sum that only equals it takes one loop more.
// Units    of the weights: any, the same for all (ns of CPU time).
// Threads  thread-safe (pure).
// Source   design: hot set.
#ifndef CORE_ANALYSIS_HOT_HOT_SET_H_
#define CORE_ANALYSIS_HOT_HOT_SET_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace perfd {

struct LoopWeight {
  uint64_t weight = 0;
  bool taken = true;  // false: it counts as loop time, and is not wanted in the set
};

// Indices into `loops`, in the order taken. Loops without weight are never hot; equal loops are
// taken in the order given. `loops` holds every compute loop: their sum is the loop time.
std::vector<size_t> HotSet(std::span<const LoopWeight> loops, double coverage_ratio,
                           int32_t max_loops);

}  // namespace perfd

#endif  // CORE_ANALYSIS_HOT_HOT_SET_H_
