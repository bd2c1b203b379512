// core/base/mutex.h - absl's mutex with its conditions, in a form whose order ThreadSanitizer sees.
//
// Shape    Mutex, MutexLock, ReaderMutexLock, CondVar: the calls of absl's classes of the same names that the project uses.
//          Elsewhere than under ThreadSanitizer each call is the call of absl's and nothing more.
// Threads  as absl's: any thread may lock; who locked unlocks. ABSL_GUARDED_BY(mutex) is proved by clang's -Wthread-safety.
// Source   Debian's absl is not instrumented: ThreadSanitizer does not see what its mutexes order. <sanitizer/tsan_interface.h>
//          tells it. absl evaluates a waiter's condition in the thread that unlocks, after it said that it unlocks; under
//          ThreadSanitizer each thread evaluates its own condition, while it holds the lock.
#ifndef CORE_BASE_MUTEX_H_
#define CORE_BASE_MUTEX_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#ifdef __SANITIZE_THREAD__
#define PERFD_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PERFD_THREAD_SANITIZER 1
#endif
#endif
#ifdef PERFD_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace perfd {

class CondVar;

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

#ifndef PERFD_THREAD_SANITIZER
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    mutex_.Lock();
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    mutex_.Unlock();
  }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    return mutex_.TryLock();
  }
  void ReaderLock() ABSL_SHARED_LOCK_FUNCTION() {
    mutex_.ReaderLock();
  }
  void ReaderUnlock() ABSL_UNLOCK_FUNCTION() {
    mutex_.ReaderUnlock();
  }
  // Lets go of the lock until `condition` holds; it is held again when this returns.
  void Await(const absl::Condition& condition) {
    mutex_.Await(condition);
  }
  // False when the time was up and `condition` still does not hold.
  bool AwaitWithTimeout(const absl::Condition& condition, absl::Duration timeout) {
    return mutex_.AwaitWithTimeout(condition, timeout);
  }
#else
  ~Mutex() {
    __tsan_mutex_destroy(this, 0);
  }
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    __tsan_mutex_pre_lock(this, 0);
    mutex_.Lock();
    __tsan_mutex_post_lock(this, 0, 0);
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    TellOthers();
    __tsan_mutex_pre_unlock(this, 0);
    mutex_.Unlock();
    __tsan_mutex_post_unlock(this, 0);
  }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    __tsan_mutex_pre_lock(this, __tsan_mutex_try_lock);
    const bool locked = mutex_.TryLock();
    __tsan_mutex_post_lock(
        this, locked ? __tsan_mutex_try_lock : __tsan_mutex_try_lock | __tsan_mutex_try_lock_failed,
        0);
    return locked;
  }
  void ReaderLock() ABSL_SHARED_LOCK_FUNCTION() {
    __tsan_mutex_pre_lock(this, __tsan_mutex_read_lock);
    mutex_.ReaderLock();
    __tsan_mutex_post_lock(this, __tsan_mutex_read_lock, 0);
  }
  void ReaderUnlock() ABSL_UNLOCK_FUNCTION() {
    __tsan_mutex_pre_unlock(this, __tsan_mutex_read_lock);
    mutex_.ReaderUnlock();
    __tsan_mutex_post_unlock(this, __tsan_mutex_read_lock);
  }
  void Await(const absl::Condition& condition) {
    AwaitWithTimeout(condition, absl::InfiniteDuration());
  }
  bool AwaitWithTimeout(const absl::Condition& condition, absl::Duration timeout) {
    const absl::Time deadline = absl::Now() + timeout;
    if (!condition.Eval()) TellOthers();
    while (!condition.Eval()) {
      if (Wait(&changed_, deadline)) return condition.Eval();
    }
    return true;
  }
#endif
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {
    mutex_.AssertHeld();
  }
  void AssertReaderHeld() const ABSL_ASSERT_SHARED_LOCK() {
    mutex_.AssertReaderHeld();
  }

 private:
  friend class CondVar;
#ifdef PERFD_THREAD_SANITIZER
  // True when the time was up.
  bool Wait(absl::CondVar* woken, absl::Time deadline) {
    __tsan_mutex_pre_unlock(this, 0);
    __tsan_mutex_post_unlock(this, 0);
    const bool late = woken->WaitWithDeadline(&mutex_, deadline);
    __tsan_mutex_pre_lock(this, 0);
    __tsan_mutex_post_lock(this, 0, 0);
    return late;
  }
  // Whoever begins to wait lets go of the lock: others may await what was done under it.
  void TellOthers() {
    changed_.SignalAll();
  }
  absl::CondVar changed_;  // signalled by every Unlock
#else
  void TellOthers() {}
  bool Wait(absl::CondVar* woken, absl::Time deadline) {
    return woken->WaitWithDeadline(&mutex_, deadline);
  }
#endif
  absl::Mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex->Lock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }

 private:
  Mutex* mutex_;
};

class ABSL_SCOPED_LOCKABLE ReaderMutexLock {
 public:
  explicit ReaderMutexLock(Mutex* mutex) ABSL_SHARED_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex->ReaderLock();
  }
  ReaderMutexLock(const ReaderMutexLock&) = delete;
  ReaderMutexLock& operator=(const ReaderMutexLock&) = delete;
  ~ReaderMutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->ReaderUnlock(); }

 private:
  Mutex* mutex_;
};

// Waits are called with the mutex held, and return with it held.
class CondVar {
 public:
  void Wait(Mutex* mutex) {
    mutex->TellOthers();
    mutex->Wait(&woken_, absl::InfiniteFuture());
  }
  // True when the time was up.
  bool WaitWithTimeout(Mutex* mutex, absl::Duration timeout) {
    mutex->TellOthers();
    return mutex->Wait(&woken_, absl::Now() + timeout);
  }
  void Signal() { woken_.Signal(); }
  void SignalAll() { woken_.SignalAll(); }

 private:
  absl::CondVar woken_;
};

// Order that a library makes among threads, told to ThreadSanitizer, which does not see into it: HandOver() before what was made
// is given to the library (a server is started), TakeOver() first in its callbacks.
#ifdef PERFD_THREAD_SANITIZER
inline char handover_key = 0;
inline void HandOver() {
  __tsan_release(&handover_key);
}
inline void TakeOver() {
  __tsan_acquire(&handover_key);
}
#else
inline void HandOver() {}
inline void TakeOver() {}
#endif

}  // namespace perfd

#endif  // CORE_BASE_MUTEX_H_
