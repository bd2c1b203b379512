#include "daemon/ingest/worker.h"

#include <pthread.h>

#include <utility>

#include "core/base/clock.h"

namespace perfd::daemon {

Worker::Worker(std::string name, size_t threads, size_t capacity) : queue_(capacity) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this, name] { Run(name); });
}

Worker::~Worker() {
  Close();
}

bool Worker::Post(std::function<void()> task, std::function<void()> otherwise) {
  return queue_.TryPush({std::move(task), std::move(otherwise)});
}

void Worker::Close(absl::Duration within) {
  if (within < absl::InfiniteDuration())
    run_until_ns_ = SystemClock().MonotonicNs() + absl::ToInt64Nanoseconds(within);
  queue_.Close();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Worker::Run(const std::string& name) {
  pthread_setname_np(pthread_self(), name.c_str());
  while (true) {
    auto task = queue_.Pop(absl::Minutes(1));
    if (task.has_value()) {
      const bool in_time = SystemClock().MonotonicNs() < run_until_ns_;
      const std::function<void()>& todo = in_time ? task->run : task->otherwise;
      if (todo) todo();
    } else if (queue_.closed() && queue_.size() == 0) {
      return;
    }
  }
}

}  // namespace perfd::daemon
