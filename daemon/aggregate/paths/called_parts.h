// daemon/aggregate/paths/called_parts.h - which part of the time of a function belongs to the loops that had called it.
//
// Shape    CalledParts(calls) -> of each place, for each loop that had called it: how many of its paths go through that loop.
//          Every path weighs alike, as all samples of a place in one session are drawn with the same chance. (Not those of
//          sessions whose threads differ in number: each has the same number of paths a second.)
// Units    paths. A place with less than `least_paths` has no parts: it would be a guess.
// Threads  thread-safe (pure).
#ifndef DAEMON_AGGREGATE_PATHS_CALLED_PARTS_H_
#define DAEMON_AGGREGATE_PATHS_CALLED_PARTS_H_

#include <cstdint>
#include <vector>

#include "core/model/window.h"

namespace perfd::daemon {

inline constexpr uint64_t kLeastPaths = 5;

struct CalledPart {
  uint32_t location = 0;
  uint32_t loop = 0;
  uint64_t paths = 0;  // of these, at most
  uint64_t all = 0;    // of the location, those that no loop had called included

  uint64_t Of(uint64_t time) const;  // rounded down
};

std::vector<CalledPart> CalledParts(const std::vector<WindowCall>& calls,
                                    uint64_t least_paths = kLeastPaths);

}  // namespace perfd::daemon

#endif  // DAEMON_AGGREGATE_PATHS_CALLED_PARTS_H_
