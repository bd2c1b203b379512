// daemon/ingest/fair_queue.h - a bounded queue in lanes: each lane's items in order, and time shared equally by the lanes that have some.
//
// Shape    Pop takes from the lane that has used least; Charge tells what an item took. A lane that was empty begins where the others
//          are: nobody saves up time, and who has used more waits no longer for that once the queue is empty.
//          One lane only: first in, first out.
// Units    time in any unit, the same for all lanes.
// Threads  thread-safe.
// Source   start-time fair queuing: Goyal, Vin, Cheng, "Start-time Fair Queuing", SIGCOMM 1996.
#ifndef DAEMON_INGEST_FAIR_QUEUE_H_
#define DAEMON_INGEST_FAIR_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace perfd::daemon {

template <typename T>
class FairQueue {
 public:
  struct Item {
    int64_t lane = 0;
    int64_t began = 0;  // what its lane had used
    T value;
  };

  explicit FairQueue(size_t capacity) : capacity_(capacity) {}

  // False when full or closed; moves from `value` only when it returns true.
  bool TryPush(int64_t lane, T&& value) {
    MutexLock lock(&mutex_);
    if (closed_ || size_ >= capacity_) return false;
    Lane& into = lanes_[lane];
    if (into.items.empty()) into.used = std::max(into.used, now_);
    into.items.push_back(std::move(value));
    ++size_;
    return true;
  }

  // The next item, or nothing after `timeout` or once closed and empty.
  std::optional<Item> Pop(absl::Duration timeout) {
    MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(this, &FairQueue::Ready), timeout);
    if (size_ == 0) return std::nullopt;
    auto next = lanes_.end();
    for (auto it = lanes_.begin(); it != lanes_.end();) {
      if (it->second.items.empty() && it->second.used <= now_) {
        it = lanes_.erase(it);
        continue;
      }
      const bool less = next == lanes_.end() || it->second.used < next->second.used;
      if (!it->second.items.empty() && less) next = it;
      ++it;
    }
    Item item{next->first, next->second.used, std::move(next->second.items.front())};
    next->second.items.pop_front();
    --size_;
    now_ = next->second.used;
    return item;
  }

  // What an item took. That others got on meanwhile, on other threads, is not counted.
  void Charge(const Item& item, int64_t used) {
    MutexLock lock(&mutex_);
    if (size_ == 0) return lanes_.clear();  // nobody waits for anybody
    Lane& of = lanes_[item.lane];
    of.used = std::max(of.used, item.began) + used;
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
    return size_;
  }

 private:
  struct Lane {
    std::deque<T> items;
    int64_t used = 0;
  };

  bool Ready() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || size_ > 0; }

  const size_t capacity_;
  mutable Mutex mutex_;
  std::map<int64_t, Lane> lanes_ ABSL_GUARDED_BY(mutex_);
  size_t size_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t now_ ABSL_GUARDED_BY(mutex_) = 0;  // what the lane of the last item had used by then
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace perfd::daemon

#endif  // DAEMON_INGEST_FAIR_QUEUE_H_
