#include "daemon/ingest/worker.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "core/base/clock.h"

namespace perfd::daemon {

Worker::Worker(std::string name, size_t threads, size_t capacity, int nice) : queue_(capacity) {
  for (size_t i = 0; i < threads; ++i)
    threads_.emplace_back([this, name, nice] {
      pthread_setname_np(pthread_self(), name.c_str());
      // Of this thread alone; with less right it runs as the others do.
      if (nice > 0) (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice);
      Run();
    });
}

Worker::~Worker() {
  Close();
}

bool Worker::Post(std::function<void()> task, std::function<void()> otherwise, int64_t lane) {
  return queue_.TryPush(lane, {std::move(task), std::move(otherwise)});
}

void Worker::Close(absl::Duration within) {
  if (within < absl::InfiniteDuration())
    run_until_ns_ = SystemClock().MonotonicNs() + absl::ToInt64Nanoseconds(within);
  queue_.Close();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Worker::Run() {
  while (true) {
    auto task = queue_.Pop(absl::Minutes(1));
    if (task.has_value()) {
      const int64_t begin_ns = SystemClock().MonotonicNs();
      const bool in_time = begin_ns < run_until_ns_;
      const std::function<void()>& todo = in_time ? task->value.run : task->value.otherwise;
      if (todo) todo();
      queue_.Charge(*task, SystemClock().MonotonicNs() - begin_ns);
    } else if (queue_.closed() && queue_.size() == 0) {
      return;
    }
  }
}

}  // namespace perfd::daemon
