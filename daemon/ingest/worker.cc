#include "daemon/ingest/worker.h"

#include <pthread.h>

#include <utility>

namespace perfd {

Worker::Worker(std::string name, size_t threads, size_t capacity) : queue_(capacity) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this, name] { Run(name); });
}

Worker::~Worker() {
  Close();
}

bool Worker::Post(std::function<void()> task) {
  return queue_.TryPush(std::move(task));
}

void Worker::Close() {
  queue_.Close();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Worker::Run(const std::string& name) {
  pthread_setname_np(pthread_self(), name.c_str());
  while (true) {
    auto task = queue_.Pop(absl::Minutes(1));
    if (task.has_value()) {
      (*task)();
    } else if (queue_.closed() && queue_.size() == 0) {
      return;
    }
  }
}

}  // namespace perfd
