#include "agent/pipeline/session_windows.h"

#include <algorithm>
#include <utility>

#include "agent/pipeline/cost/own_cpu.h"
#include "agent/pipeline/resolve_window.h"

namespace perfd::agent {

void PathPolicy::Learn(const Window& window) {
  if (callpaths_ != CallPaths::kAuto) return;
  for (const WindowRow& row : window.rows) {
    samples_ += row.samples;
    if (MayBeCalled(window.locations[row.location])) outside_ += row.samples;
  }
  if (samples_ >= kLeastSamples)
    tell_something_ = static_cast<double>(outside_) >= kLeastShare * static_cast<double>(samples_);
}

// By frame pointers the caller of a function without a frame is passed over: its loop would be taken for another one.
void PathPolicy::Strip(WindowPaths& paths) const {
  if (callpaths_ == CallPaths::kAuto) paths = {{}, {}, std::move(paths.calls)};
  if (callpaths_ == CallPaths::kFramePointer) paths.calls.clear();
}

int64_t WindowLengthNs(int64_t duration_ns, int windows_sent) {
  if (windows_sent == 0) return std::min(duration_ns, 500 * kNsPerMs);
  return std::clamp(duration_ns / 12, kNsPerSecond, 5 * kNsPerSecond);
}

SessionWindows::SessionWindows(Resolver* resolver, const Clock& clock,
                               std::shared_ptr<WindowDelivery> delivery, CallPaths callpaths)
    : resolver_(resolver),
      clock_(clock),
      delivery_(std::move(delivery)),
      budget_(std::make_shared<ReadBudget>(clock)),
      wall_times_(std::make_shared<WallTimes>()),
      paths_(std::make_shared<PathPolicy>(callpaths)) {
  CountAgent();
}

void SessionWindows::SkipPaths(uint64_t samples) {
  if (paths_->kept()) accounting().stack_skipped += samples;
}

void SessionWindows::CutPath() {
  if (paths_->kept()) ++accounting().stack_truncated;
}

void SessionWindows::CountAgent() {
  agent_cpu_ns_ = AgentCpuNs();
}

void SessionWindows::Begin() {
  started_ns_ = clock_.MonotonicNs();
  started_unix_ns_ = clock_.UnixNs();
}

bool SessionWindows::IsDue(int64_t duration_ns) const {
  return clock_.MonotonicNs() - started_ns_ >= WindowLengthNs(duration_ns, closed_);
}

void SessionWindows::Close(WindowFacts facts) {
  auto raw = std::make_unique<RawWindow>(builder_.Drain());
  raw->start_unix_ns = started_unix_ns_;
  raw->duration_ns = clock_.MonotonicNs() - started_ns_;
  raw->setup = std::move(facts.setup);
  raw->ranks = std::move(facts.ranks);
  const uint64_t agent_cpu_ns = AgentCpuNs();
  raw->overhead.agent_cpu_ns = agent_cpu_ns - std::exchange(agent_cpu_ns_, agent_cpu_ns);
  raw->overhead.lost_to_agent_ns =
      std::min(facts.costs.lost_to_agent_ns, raw->overhead.agent_cpu_ns);
  raw->overhead.job_cpu_ns = facts.costs.job_cpu_ns;
  raw->overhead.rank_wall_ns = facts.costs.rank_wall_ns;
  raw->overhead.kernel_sampling_ns =
      static_cast<uint64_t>(static_cast<double>(raw->accounting.seen) * facts.sample_cost_ns) +
      static_cast<uint64_t>(facts.costs.following_ns);
  raw->overhead.stops = facts.experiment.stops;
  raw->overhead.stop_ns = facts.experiment.stop_ns;
  raw->findings.measurements = std::move(facts.experiment.measurements);
  raw->audit = std::move(facts.experiment.audit);
  raw->leased = {std::move(facts.experiment.pauses), facts.experiment.pauses_dropped};
  raw->wall.processes = std::move(facts.processes);
  raw->wall.period_ns = facts.period_ns;
  raw->wall.times = wall_times_;
  ++closed_;
  pending_.push_back(std::move(raw));
  Begin();
  Submit();
}

void SessionWindows::Submit() {
  while (!pending_.empty()) {
    delivery_->Expect();
    const bool taken = resolver_->Submit(
        pending_.front(), budget_,
        [delivery = delivery_, paths = paths_](Window window, const UnreadableModules& unreadable) {
          paths->Learn(window);
          paths->Strip(window.paths);
          delivery->Deliver(std::move(window), unreadable);
        });
    if (!taken) {
      delivery_->Unexpect();
      break;
    }
    pending_.erase(pending_.begin());
  }
  while (pending_.size() > kMaxPending) {
    const Accounting& lost = pending_.front()->accounting;
    accounting() += lost;
    accounting().Drop(DropReason::kQueueFull, lost.kept);
    accounting().kept -= lost.kept;
    pending_.erase(pending_.begin());
  }
}

bool SessionWindows::AwaitAll(absl::Duration timeout, const std::function<void()>& rest) {
  const int64_t end_ns = clock_.MonotonicNs() + absl::ToInt64Nanoseconds(timeout);
  while (!pending_.empty() && clock_.MonotonicNs() < end_ns) {
    Submit();
    rest();
  }
  return pending_.empty() && delivery_->AwaitAll(timeout);
}

}  // namespace perfd::agent
