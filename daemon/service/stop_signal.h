// daemon/service/stop_signal.h - waits for SIGTERM, SIGINT or SIGHUP without a signal handler.
//
// Shape    Catch before the first thread starts: the signals are blocked in every thread and read from a signalfd.
// Source   signalfd(2).
#ifndef DAEMON_SERVICE_STOP_SIGNAL_H_
#define DAEMON_SERVICE_STOP_SIGNAL_H_

#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"

namespace perfd::daemon {

class StopSignal {
 public:
  static absl::StatusOr<StopSignal> Catch();
  // The number of the signal that came; 0: none within `most`.
  int Wait(absl::Duration most) const;

 private:
  explicit StopSignal(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

// As many descriptors as we may have: each agent takes one.
void RaiseFileLimit();

}  // namespace perfd::daemon

#endif  // DAEMON_SERVICE_STOP_SIGNAL_H_
