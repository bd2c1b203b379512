// agent/attach/stop_watchdog.h - a timer that kills this process: what it holds is then released by the kernel.
//
// Shape    Arm before the first thread is stopped, Disarm after the last is released. The timer sends SIGKILL: it takes no
//          code of ours, so it also works when this process hangs, runs wild, or was stopped itself (SIGSTOP).
// Units    ns of CLOCK_MONOTONIC.
// Errors   Create: kResourceExhausted.
// Threads  thread-bound.
// Source   timer_create(2), signal(7).
#ifndef AGENT_ATTACH_STOP_WATCHDOG_H_
#define AGENT_ATTACH_STOP_WATCHDOG_H_

#include <time.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace perfd::agent {

class StopWatchdog {
 public:
  static absl::StatusOr<std::unique_ptr<StopWatchdog>> Create();
  ~StopWatchdog();
  StopWatchdog(const StopWatchdog&) = delete;
  StopWatchdog& operator=(const StopWatchdog&) = delete;

  void Arm(int64_t after_ns);
  void Disarm();

 private:
  explicit StopWatchdog(timer_t timer) : timer_(timer) {}

  const timer_t timer_;
};

}  // namespace perfd::agent

#endif  // AGENT_ATTACH_STOP_WATCHDOG_H_
