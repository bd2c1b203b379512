// core/service/spine_watch.h - whether the service manager may be told that we live: only when the spine has moved.
//
// Shape    a counter of the spine's turns goes in; Moved() is true when it has grown since it last was. A program whose
//          signal handling lives while its spine hangs falls silent, and is restarted.
// Threads  thread-compatible.
// Source   sd_watchdog_enabled(3): send at half of the time or more often.
#ifndef CORE_SERVICE_SPINE_WATCH_H_
#define CORE_SERVICE_SPINE_WATCH_H_

#include <cstdint>

#include "absl/time/time.h"

namespace perfd {

class SpineWatch {
 public:
  static constexpr int kPerWatchdog = 4;

  // `watchdog`: zero when nobody watches.
  explicit SpineWatch(absl::Duration watchdog)
      : pause_(watchdog > absl::ZeroDuration() ? watchdog / kPerWatchdog
                                               : absl::InfiniteDuration()) {}

  // How long to wait between two looks.
  absl::Duration pause() const { return pause_; }
  bool Moved(uint64_t turns) {
    const bool moved = turns != seen_;
    seen_ = turns;
    return moved;
  }

 private:
  const absl::Duration pause_;
  uint64_t seen_ = 0;
};

}  // namespace perfd

#endif  // CORE_SERVICE_SPINE_WATCH_H_
