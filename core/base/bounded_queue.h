// core/base/bounded_queue.h - a queue between two threads that never grows past its capacity.
//
// Shape    TryPush returns false when full (the caller counts the drop); Pop waits up to a bound.
// Threads  thread-safe.
#ifndef CORE_BASE_BOUNDED_QUEUE_H_
#define CORE_BASE_BOUNDED_QUEUE_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace perfd {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // Moves from `value` only when it returns true.
  bool TryPush(T&& value) {
    MutexLock lock(&mutex_);
    if (closed_ || items_.size() >= capacity_) return false;
    items_.push_back(std::move(value));
    return true;
  }

  // The next item, or nothing after `timeout` or once closed and empty.
  std::optional<T> Pop(absl::Duration timeout) {
    MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(this, &BoundedQueue::Ready), timeout);
    if (items_.empty()) return std::nullopt;
    T value = std::move(items_.front());
    items_.pop_front();
    return value;
  }

  void Close() {
    MutexLock lock(&mutex_);
    closed_ = true;
  }

  bool closed() const {
    MutexLock lock(&mutex_);
    return closed_;
  }

  size_t size() const {
    MutexLock lock(&mutex_);
    return items_.size();
  }

 private:
  bool Ready() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || !items_.empty(); }

  const size_t capacity_;
  mutable Mutex mutex_;
  std::deque<T> items_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace perfd

#endif  // CORE_BASE_BOUNDED_QUEUE_H_
