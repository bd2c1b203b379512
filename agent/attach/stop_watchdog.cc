#include "agent/attach/stop_watchdog.h"

#include <signal.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"

namespace perfd::agent {

absl::StatusOr<std::unique_ptr<StopWatchdog>> StopWatchdog::Create() {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  timer_t timer{};
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
    return absl::ResourceExhaustedError(absl::StrCat("watchdog timer: ", strerror(errno)));
  return std::unique_ptr<StopWatchdog>(new StopWatchdog(timer));
}

StopWatchdog::~StopWatchdog() {
  ::timer_delete(timer_);
}

void StopWatchdog::Arm(int64_t after_ns) {
  itimerspec when{};
  when.it_value.tv_sec = after_ns / kNsPerSecond;
  when.it_value.tv_nsec = after_ns % kNsPerSecond;
  ::timer_settime(timer_, 0, &when, nullptr);
}

void StopWatchdog::Disarm() {
  const itimerspec never{};
  ::timer_settime(timer_, 0, &never, nullptr);
}

}  // namespace perfd::agent
