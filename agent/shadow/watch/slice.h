// agent/shadow/watch/slice.h - how long to sleep between two looks at what the payload counts. Pure.
//
// Units    ns.
#ifndef AGENT_SHADOW_WATCH_SLICE_H_
#define AGENT_SHADOW_WATCH_SLICE_H_

#include <algorithm>
#include <cstdint>

#include "core/base/clock.h"

namespace perfd::agent {

inline constexpr int64_t kShortestSliceNs = 2 * kNsPerMs;
inline constexpr int64_t kDoorbellSliceNs = 50 * kNsPerMs;  // with a doorbell nothing is late

// Between two looks for what has lasted so long already, of somebody who does not hear the doorbell.
inline int64_t SliceNs(int64_t elapsed_ns, int64_t most_ns) {
  return std::clamp(elapsed_ns / 4, kShortestSliceNs, most_ns);
}

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_WATCH_SLICE_H_
