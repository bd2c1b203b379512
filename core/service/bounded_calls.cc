#include "core/service/bounded_calls.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace perfd {
namespace {

constexpr absl::Duration kFarewell = absl::Milliseconds(200);  // threads that only wait for work
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

}  // namespace

struct BoundedCalls::Shared {
  struct Job {
    std::function<void()> task;
    absl::Duration within;
    bool done = false;  // of the mutex
  };

  explicit Shared(size_t threads) : due_ns(threads, kNever), living(threads) {}

  // Null: it is over.
  std::shared_ptr<Job> Next(size_t thread) {
    MutexLock lock(&mutex);
    mutex.Await(absl::Condition(this, &Shared::HasWork));
    if (closed) {
      --living;
      return nullptr;
    }
    std::shared_ptr<Job> job = std::move(queue.front());
    queue.pop_front();
    due_ns[thread] = SystemClock().MonotonicNs() + absl::ToInt64Nanoseconds(job->within);
    return job;
  }
  void Done(size_t thread, Job& job) {
    MutexLock lock(&mutex);
    job.done = true;
    due_ns[thread] = kNever;
  }
  bool AllStuck() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const int64_t now_ns = SystemClock().MonotonicNs();
    return std::all_of(due_ns.begin(), due_ns.end(), [&](int64_t due) { return due <= now_ns; });
  }
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return closed || !queue.empty(); }
  bool NobodyLives() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return living == 0; }

  Mutex mutex;
  std::deque<std::shared_ptr<Job>> queue ABSL_GUARDED_BY(mutex);  // shared with who waits
  std::vector<int64_t> due_ns ABSL_GUARDED_BY(mutex);  // when each thread's call is stuck
  size_t living ABSL_GUARDED_BY(mutex);
  bool closed ABSL_GUARDED_BY(mutex) = false;
};

BoundedCalls::BoundedCalls(const std::string& name, size_t threads)
    : shared_(std::make_shared<Shared>(threads)) {
  for (size_t i = 0; i < threads; ++i) {
    std::thread([shared = shared_, name, i] {
      pthread_setname_np(pthread_self(), name.c_str());
      while (const std::shared_ptr<Shared::Job> job = shared->Next(i)) {
        job->task();
        shared->Done(i, *job);
      }
    }).detach();
  }
}

BoundedCalls::~BoundedCalls() {
  MutexLock lock(&shared_->mutex);
  shared_->closed = true;
  shared_->queue.clear();
  shared_->mutex.AwaitWithTimeout(absl::Condition(shared_.get(), &Shared::NobodyLives), kFarewell);
}

bool BoundedCalls::Run(absl::Duration within, std::function<void()> task) {
  // Shared: the call may go on after we stopped waiting.
  auto job = std::make_shared<Shared::Job>();
  job->task = std::move(task);
  job->within = within;
  Shared& shared = *shared_;
  MutexLock lock(&shared.mutex);
  if (shared.closed || shared.queue.size() >= kMostWaiting || shared.AllStuck()) return false;
  shared.queue.push_back(job);
  if (shared.mutex.AwaitWithTimeout(absl::Condition(&job->done), within)) return true;
  std::erase(shared.queue, job);
  return false;
}

}  // namespace perfd
