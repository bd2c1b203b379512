// daemon/ingest/worker.h - tasks done in order on named threads, from a bounded queue.
//
// Shape    Post returns false when the queue is full or closed; with one thread, tasks run in the order of Post.
// Threads  thread-safe. Close runs what is queued, then joins; also done by the destructor.
#ifndef DAEMON_INGEST_WORKER_H_
#define DAEMON_INGEST_WORKER_H_

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/bounded_queue.h"

namespace perfd {

class Worker {
 public:
  // `name` is at most 15 bytes (pthread_setname_np(3)).
  Worker(std::string name, size_t threads, size_t capacity);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  bool Post(std::function<void()> task);
  void Close();
  size_t size() const { return queue_.size(); }

 private:
  void Run(const std::string& name);

  BoundedQueue<std::function<void()>> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace perfd

#endif  // DAEMON_INGEST_WORKER_H_
