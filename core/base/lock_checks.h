// core/base/lock_checks.h - turns off what absl's mutexes check about the order of locks, in programs that run for long.
//
// Shape    call first in main, before any lock is taken. Tests do not call it: there the checks stay.
// Source   Debian builds absl without NDEBUG, so that every lock is entered into one graph of the whole process, under a lock of
//          its own: 45 ns instead of 8 without any contention (docs/benchmarks/constants.md#skiplockorderchecks).
#ifndef CORE_BASE_LOCK_CHECKS_H_
#define CORE_BASE_LOCK_CHECKS_H_

#include "absl/synchronization/mutex.h"

namespace perfd {

inline void SkipLockOrderChecks() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace perfd

#endif  // CORE_BASE_LOCK_CHECKS_H_
