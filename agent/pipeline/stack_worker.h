// agent/pipeline/stack_worker.h - the thread of a session that turns copies of stacks into call paths.
//
// Shape    Submit a StackTask; Drain gives the results that are there. Each task gives one result, found or not.
// Errors   a process whose paths cannot be read gives results that are not found and one trouble.
// Threads  Submit, Take and the rest are thread-safe; one thread of its own ("perfd-unwind"), which owns the sources.
// Bounds   kMaxQueued tasks wait (Submit returns false beyond); kMaxSources processes have a source at a time, and one is
//          replaced only after kMinSourceNs. A source is opened anew, at most every kReopenNs, when a path ends in code
//          that was mapped later, and kRetryNs after a failure.
#ifndef AGENT_PIPELINE_STACK_WORKER_H_
#define AGENT_PIPELINE_STACK_WORKER_H_

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "agent/pipeline/stack_source.h"
#include "core/base/bounded_queue.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace perfd::agent {

struct StackTask {
  std::shared_ptr<const StackTarget> target;  // shared by all tasks until the mappings change
  int32_t rank = 0;
  bool kernel = false;  // the sample was taken in the kernel, on behalf of the innermost frame
  StackCopy copy{};
  uint64_t time_ns = 0;  // of the sample
};

struct StackResult {
  std::shared_ptr<const StackTarget> target;
  int32_t rank = 0;
  bool kernel = false;
  std::optional<CallPath> path;  // nothing: it could not be found
  uint64_t time_ns = 0;          // of the sample
};

class StackWorker {
 public:
  static constexpr size_t kMaxQueued = 64;
  static constexpr size_t kMaxSources = 32;
  static constexpr int64_t kMinSourceNs = 10 * kNsPerSecond;
  static constexpr int64_t kReopenNs = 2 * kNsPerSecond;
  static constexpr int64_t kRetryNs = 10 * kNsPerSecond;

  StackWorker(OpenStackSource open, const Clock& clock, size_t max_sources = kMaxSources);
  ~StackWorker();  // forgets what is queued; waits for the path under way

  // `task` is consumed only on success.
  bool Submit(StackTask& task);
  std::vector<StackResult> Drain();
  // Tasks that have not yet given a result to Drain.
  size_t outstanding() const { return outstanding_; }
  // CPU time of the thread and the sources for unwinding alone, which grows with the rate, ns.
  uint64_t unwind_cpu_ns() const { return unwind_cpu_ns_; }
  // Processes whose paths cannot be read, each once.
  std::vector<std::pair<int32_t, absl::Status>> DrainTroubles();

 private:
  struct Slot {
    std::unique_ptr<StackSource> source;
    std::shared_ptr<const StackTarget> target;  // as it was when the source was opened
    int64_t opened_ns = 0;
    int64_t retry_at_ns = 0;
    uint64_t counted_cpu_ns = 0;  // of the source
  };
  void Run();
  std::optional<CallPath> Unwind(const StackTask& task);
  Slot* SlotOf(const StackTarget& target);
  bool Open(Slot& slot, const std::shared_ptr<const StackTarget>& target);
  std::optional<CallPath> Ask(Slot& slot, const StackTask& task);
  void Trouble(int32_t pid, const absl::Status& status);

  const OpenStackSource open_;
  const Clock& clock_;
  const size_t max_sources_;
  absl::flat_hash_map<int32_t, Slot> slots_;  // by pid; the thread's own
  BoundedQueue<StackTask> queue_{kMaxQueued};
  std::atomic<size_t> outstanding_ = 0;
  std::atomic<uint64_t> unwind_cpu_ns_ = 0;
  Mutex mutex_;
  std::vector<StackResult> results_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<int32_t> troubled_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<int32_t, absl::Status>> troubles_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_STACK_WORKER_H_
