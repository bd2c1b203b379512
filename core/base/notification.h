// core/base/notification.h - something that happens once, and threads that wait for it.
//
// Shape    Notify() once; afterwards HasBeenNotified() is true for ever.
// Threads  any. What was written before Notify() is seen by whoever has been told.
// Source   absl::Notification, on core/base/mutex.h, so that ThreadSanitizer sees what it orders.
#ifndef CORE_BASE_NOTIFICATION_H_
#define CORE_BASE_NOTIFICATION_H_

#include "core/base/mutex.h"

namespace perfd {

class Notification {
 public:
  bool HasBeenNotified() const {
    ReaderMutexLock lock(&mutex_);
    return notified_;
  }
  void WaitForNotification() const { WaitForNotificationWithTimeout(absl::InfiniteDuration()); }
  // False when the time was up before.
  bool WaitForNotificationWithTimeout(absl::Duration timeout) const {
    MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&notified_), timeout);
  }
  void Notify() {
    MutexLock lock(&mutex_);
    notified_ = true;
  }

 private:
  mutable Mutex mutex_;
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace perfd

#endif  // CORE_BASE_NOTIFICATION_H_
