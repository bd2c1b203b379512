#include "agent/shadow/run/shadow_forecast.h"

#include <utility>

#include "agent/procfs/process_limits.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/forking/fault_cost.h"
#include "agent/shadow/forking/process_files.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

int64_t Now() {
  return SystemClock().MonotonicNs();
}

}  // namespace

ShadowForecast::ShadowForecast(const InjectedRank& rank, MemoryWalk walk)
    : rank_(rank),
      walk_(std::move(walk)),
      cost_(
          CurrentPageCosts(rank.options.tracer == nullptr ? "" : rank.options.tracer->program())) {}

int64_t ShadowForecast::LearnShadow(const MemoryFacts& forked, int64_t fork_ns, bool whole) {
  const int64_t later_fault_ns = cost_.LaterFaultNs(forked);
  watch_.Forget();
  // What is left of a trimmed fork is mostly the same for all, and what the loop writes again anyway: neither what it cost nor
  // its later faults say anything about the rest.
  if (!whole) return later_fault_ns;
  cost_.LearnFork(forked, fork_ns);
  forked_ = forked;
  if (const auto faults = ReadMinorFaults(rank_.info.pid); faults.ok())
    watch_.ShadowEnded(Now(), *faults);
  return later_fault_ns;
}

void ShadowForecast::LearnLaterFaults() {
  const auto faults = ReadMinorFaults(rank_.info.pid);
  if (!faults.ok()) return;
  if (const auto later = watch_.LaterFaults(Now(), *faults); later)
    cost_.LearnLaterFaults(forked_, *later);
  watch_.Observe(Now(), *faults);
}

absl::StatusOr<RankHazards> ShadowForecast::CheckHazards() {
  RETURN_IF_ERROR(CheckMappings(ProcFs(), rank_.info.pid, rank_.options.max_stop_ns));
  ASSIGN_OR_RETURN(const ProcessLimits limits, ReadProcessLimits(ProcFs(), rank_.info.pid));
  RETURN_IF_ERROR(CheckCpuTime(limits));
  ASSIGN_OR_RETURN(const MemoryFacts facts, walk_.Facts());
  ASSIGN_OR_RETURN(RankHazards hazards,
                   ReadHazards(rank_.info.pid, facts, rank_.options.ranks_at_once));
  RETURN_IF_ERROR(JudgeHazards(hazards));
  return hazards;
}

// That opens some twenty files; a prediction may be asked for at every look at the budget. A shadow reads anew.
absl::Status ShadowForecast::ReadMemoryCached() {
  constexpr int64_t kMemoryCacheNs = 5 * kNsPerSecond;
  if (memory_ && Now() < memory_until_ns_) return absl::OkStatus();
  MemoryCache cached;
  ASSIGN_OR_RETURN(cached.memory, walk_.Facts());
  ASSIGN_OR_RETURN(cached.node, ReadNodeMemory());
  cached.cgroup = ReadCgroupMemory(rank_.info.pid);
  memory_ = cached;
  memory_until_ns_ = Now() + kMemoryCacheNs;
  return absl::OkStatus();
}

ShadowPrediction ShadowForecast::Predict() {
  ShadowPrediction prediction;
  prediction.status = ReadMemoryCached();
  if (!prediction.status.ok()) return prediction;
  LearnLaterFaults();
  const auto& [facts, node, cgroup] = *memory_;
  prediction.status = JudgeMemory(facts, node, cgroup, 0, rank_.options.ranks_at_once);
  prediction.fork_ns = cost_.ForkNs(facts);
  prediction.later_fault_ns = cost_.LaterFaultNs(facts);
  prediction.copy_ns_per_mb = cost_.CopyNsPerMb();
  return prediction;
}

}  // namespace perfd::agent
