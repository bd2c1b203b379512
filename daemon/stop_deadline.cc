#include "daemon/stop_deadline.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>

#include "core/base/log.h"
#include "core/base/mutex.h"

namespace perfd::daemon {

StopDeadline::~StopDeadline() {
  {
    MutexLock lock(&mutex_);
    over_ = true;
  }
  thread_.join();
}

void StopDeadline::Begin(absl::Duration within) {
  MutexLock lock(&mutex_);
  within_ = within;
  begun_ = true;
}

void StopDeadline::Run() {
  pthread_setname_np(pthread_self(), "perfd-deadline");
  absl::Duration within;
  {
    MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &StopDeadline::HasUpdate));
    within = within_;
    if (over_ || mutex_.AwaitWithTimeout(absl::Condition(&over_), within)) return;
  }
  ::alarm(1);  // if the log hangs too
  LogWarning("what is under way did not end within {}; it is left, nothing acknowledged is lost",
             absl::FormatDuration(within));
  std::_Exit(0);
}

}  // namespace perfd::daemon
