// daemon/stop_deadline.h - the end of a program that comes in time, whatever hangs: a disk, a database, a long report.
//
// Shape    Begin(within) at the start of the orderly end; when that is over the destructor calls it off. Else the process ends
//          with 0: what was acknowledged is on disk (synchronous=FULL), and the rest comes again, as after a power cut.
// Threads  own thread, perfd-deadline, from the start: at the end there may be no room for one.
// Source   exit_group(2) ends every thread but those in an uninterruptible call of the kernel, such as a commit's fsync.
#ifndef DAEMON_STOP_DEADLINE_H_
#define DAEMON_STOP_DEADLINE_H_

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace perfd::daemon {

class StopDeadline {
 public:
  StopDeadline() : thread_([this] { Run(); }) {}
  ~StopDeadline();
  StopDeadline(const StopDeadline&) = delete;
  StopDeadline& operator=(const StopDeadline&) = delete;

  void Begin(absl::Duration within);

 private:
  void Run();
  bool HasUpdate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return begun_ || over_; }

  Mutex mutex_;
  absl::Duration within_ ABSL_GUARDED_BY(mutex_);
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace perfd::daemon

#endif  // DAEMON_STOP_DEADLINE_H_
