// daemon/aggregate/recent_heat.h - what each loop, with what it calls, got in the last seconds, over the whole job.
//
// Shape    Add(window) in any order; Recent(now, span): by LocationId, of the windows that ended within the span before now,
//          or within a span after it (clocks differ). Whatever is farther away is forgotten then.
// Units    samples, and the ns of CPU time and of elapsed time they stand for; ns of the wall clock. A node whose clock is off by more
//          than the span is not counted: its loops are judged by the whole profile alone.
// Bounds   kMostSlots seconds, kMostKeys loops in each; what finds no place is counted in lost().
// Threads  thread-compatible.
#ifndef DAEMON_AGGREGATE_RECENT_HEAT_H_
#define DAEMON_AGGREGATE_RECENT_HEAT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "core/model/window.h"

namespace perfd::daemon {

class RecentHeat {
 public:
  static constexpr size_t kMostSlots = 128;
  static constexpr size_t kMostKeys = 4096;
  struct Heat {
    uint64_t samples = 0;
    uint64_t cpu_ns = 0;
    uint64_t wall_ns = 0;

    Heat& operator+=(const Heat& other);
  };
  using ById = absl::flat_hash_map<std::string, Heat>;

  void Add(const Window& window);
  ById Recent(int64_t now_unix_ns, int64_t span_ns);
  uint64_t lost() const { return lost_; }  // samples, waiting loops included

 private:
  std::map<int64_t, ById> slots_;  // by the second in which windows ended
  uint64_t lost_ = 0;
};

}  // namespace perfd::daemon

#endif  // DAEMON_AGGREGATE_RECENT_HEAT_H_
