// daemon/ingest/worker.h - tasks done in order on named threads, from a bounded queue.
//
// Shape    Post returns false when the queue is full or closed; with one thread, tasks of a lane run in the order of Post. Lanes share
//          the time equally, so that whoever brings much work waits for it alone.
//          Close runs what is queued, for as long as it is given; then it gives the rest up, and waits for the task under way.
// Threads  thread-safe. The destructor closes without a limit.
#ifndef DAEMON_INGEST_WORKER_H_
#define DAEMON_INGEST_WORKER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "daemon/ingest/fair_queue.h"

namespace perfd::daemon {

class Worker {
 public:
  // `name` is at most 15 bytes (pthread_setname_np(3)). `nice`: of its threads, whose work may wait for that of others (nice(2)).
  Worker(std::string name, size_t threads, size_t capacity, int nice = 0);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // `otherwise` is called instead of a task that is given up; may be empty.
  bool Post(std::function<void()> task, std::function<void()> otherwise = {}, int64_t lane = 0);
  bool PostTo(int64_t lane, std::function<void()> task) { return Post(std::move(task), {}, lane); }
  void Close(absl::Duration within = absl::InfiniteDuration());
  bool closed() const { return queue_.closed(); }
  size_t size() const { return queue_.size(); }

 private:
  struct Task {
    std::function<void()> run;
    std::function<void()> otherwise;
  };

  void Run();

  FairQueue<Task> queue_;
  std::atomic<int64_t> run_until_ns_{std::numeric_limits<int64_t>::max()};  // monotonic
  std::vector<std::thread> threads_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_INGEST_WORKER_H_
