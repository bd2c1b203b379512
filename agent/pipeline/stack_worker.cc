#include "agent/pipeline/stack_worker.h"

#include <pthread.h>

#include <algorithm>

#include "core/base/cpu_time.h"
#include "core/base/mutex.h"

namespace perfd::agent {
namespace {

constexpr absl::Duration kUnwindTimeout = absl::Seconds(1);
constexpr absl::Duration kIdle = absl::Milliseconds(500);

bool Maps(const StackTarget& target, RuntimeAddress address) {
  auto at = std::upper_bound(target.mappings.begin(), target.mappings.end(), address,
                             [](RuntimeAddress a, const CodeMapping& m) { return a < m.start; });
  return at != target.mappings.begin() && address < std::prev(at)->end;
}

}  // namespace

StackWorker::StackWorker(OpenStackSource open, const Clock& clock, size_t max_sources)
    : open_(std::move(open)), clock_(clock), max_sources_(max_sources), thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "perfd-unwind");
}

StackWorker::~StackWorker() {
  queue_.Close();
  thread_.join();
}

bool StackWorker::Submit(StackTask& task) {
  ++outstanding_;
  if (queue_.TryPush(std::move(task))) return true;
  --outstanding_;
  return false;
}

std::vector<StackResult> StackWorker::Drain() {
  std::vector<StackResult> results;
  {
    MutexLock lock(&mutex_);
    results.swap(results_);
  }
  outstanding_ -= results.size();
  return results;
}

std::vector<std::pair<int32_t, absl::Status>> StackWorker::DrainTroubles() {
  MutexLock lock(&mutex_);
  return std::exchange(troubles_, {});
}

void StackWorker::Trouble(int32_t pid, const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (troubled_.insert(pid).second) troubles_.emplace_back(pid, status);
}

void StackWorker::Run() {
  while (!queue_.closed()) {
    auto task = queue_.Pop(kIdle);
    if (!task.has_value()) continue;
    StackResult result{task->target, task->rank, task->kernel, Unwind(*task), task->time_ns};
    MutexLock lock(&mutex_);
    results_.push_back(std::move(result));
  }
  slots_.clear();  // readers are bound to this thread
}

// The slot of a process; null when there is no room for one more.
StackWorker::Slot* StackWorker::SlotOf(const StackTarget& target) {
  auto it = slots_.find(target.pid);
  if (it != slots_.end()) return &it->second;
  if (slots_.size() >= max_sources_) {
    auto oldest = std::min_element(slots_.begin(), slots_.end(), [](const auto& a, const auto& b) {
      return a.second.opened_ns < b.second.opened_ns;
    });
    if (clock_.MonotonicNs() - oldest->second.opened_ns < kMinSourceNs) return nullptr;
    slots_.erase(oldest);
  }
  return &slots_[target.pid];
}

bool StackWorker::Open(Slot& slot, const std::shared_ptr<const StackTarget>& target) {
  slot.source.reset();
  slot.target = target;
  slot.opened_ns = clock_.MonotonicNs();
  slot.counted_cpu_ns = 0;
  auto source = open_(*target);
  if (!source.ok()) {
    slot.retry_at_ns = slot.opened_ns + kRetryNs;
    Trouble(target->pid, source.status());
    return false;
  }
  slot.source = std::move(source).value();
  slot.counted_cpu_ns = slot.source->cpu_ns();
  return true;
}

std::optional<CallPath> StackWorker::Ask(Slot& slot, const StackTask& task) {
  const uint64_t begin_ns = ThreadCpuNs();
  auto path = slot.source->Unwind(task.copy, kUnwindTimeout);
  const uint64_t cpu_ns = std::max(slot.source->cpu_ns(), slot.counted_cpu_ns);
  const uint64_t used_ns = cpu_ns - std::exchange(slot.counted_cpu_ns, cpu_ns);
  unwind_cpu_ns_ += used_ns + ThreadCpuNs() - begin_ns;
  if (path.ok()) return std::move(path).value();
  slot.source.reset();
  slot.retry_at_ns = clock_.MonotonicNs() + kRetryNs;
  Trouble(task.target->pid, path.status());
  return std::nullopt;
}

std::optional<CallPath> StackWorker::Unwind(const StackTask& task) {
  Slot* slot = SlotOf(*task.target);
  if (slot == nullptr) return std::nullopt;
  const bool other_program = slot->target != nullptr && slot->target->image != task.target->image;
  if (other_program && task.target->image < slot->target->image)
    return std::nullopt;  // from before an exec
  if (slot->source == nullptr || other_program) {
    if (!other_program && clock_.MonotonicNs() < slot->retry_at_ns) return std::nullopt;
    if (!Open(*slot, task.target)) return std::nullopt;
  }
  auto path = Ask(*slot, task);
  if (!path.has_value() || path->unknown_address == 0) return path;
  // Mapped since the source was opened?
  if (task.target->generation <= slot->target->generation ||
      !Maps(*task.target, path->unknown_address) ||
      clock_.MonotonicNs() - slot->opened_ns < kReopenNs)
    return path;
  if (!Open(*slot, task.target)) return path;
  auto again = Ask(*slot, task);
  return again.has_value() ? again : path;
}

}  // namespace perfd::agent
