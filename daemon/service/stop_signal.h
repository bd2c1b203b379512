// daemon/service/stop_signal.h - waits for SIGTERM or SIGINT without a signal handler.
//
// Shape    Catch before the first thread starts: the signals are blocked in every thread and read from a signalfd.
// Source   signalfd(2).
#ifndef DAEMON_SERVICE_STOP_SIGNAL_H_
#define DAEMON_SERVICE_STOP_SIGNAL_H_

#include <utility>

#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace perfd {

class StopSignal {
 public:
  static absl::StatusOr<StopSignal> Catch();
  // The number of the signal that came.
  int Wait() const;

 private:
  explicit StopSignal(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

// As many descriptors as we may have: each agent takes one.
void RaiseFileLimit();

}  // namespace perfd

#endif  // DAEMON_SERVICE_STOP_SIGNAL_H_
