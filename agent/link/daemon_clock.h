// agent/link/daemon_clock.h - how far this node's wall clock is ahead of the daemon's, where people would see it.
//
// Shape    Welcomed, then Told at every heartbeat; AheadNs by the monotonic clock in between, so that a clock that is set
//          right meanwhile is right. ToDaemonTime tells a window's times by the daemon's clock.
// Units    ns; negative: this node is behind. 0: the clocks agree, or the daemon's is not known.
// Errors   none: what cannot be a time of the daemon is passed over.
// Threads  thread-safe.
// Source   what is told is late by its way here, never early: of the last two the one that says later holds. kMostSlew: the
//          kernel corrects a clock's rate by at most 500 ppm (adjtimex(2), "freq"); two clocks may drift apart by that.
#ifndef AGENT_LINK_DAEMON_CLOCK_H_
#define AGENT_LINK_DAEMON_CLOCK_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/model/window.h"

namespace perfd::agent {

class DaemonClock {
 public:
  static constexpr int64_t kAgreeNs = kNsPerSecond;
  static constexpr double kMostSlew = 500e-6;

  // `here` outlives it.
  explicit DaemonClock(const Clock& here) : here_(here) {}

  void Welcomed(int64_t daemon_unix_ns);
  void Told(int64_t daemon_unix_ns);
  int64_t AheadNs() const;

 private:
  const Clock& here_;
  mutable Mutex mutex_;
  bool known_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t told_ns_ ABSL_GUARDED_BY(mutex_) = 0;    // monotonic: the last time
  int64_t latest_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // the daemon's wall clock less our monotonic
  int64_t before_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // what was told before that
};

void ToDaemonTime(int64_t ahead_ns, Window& window);

}  // namespace perfd::agent

#endif  // AGENT_LINK_DAEMON_CLOCK_H_
