#include "agent/shadow/run/trimmed_forks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/forking/memory_sharing.h"
#include "agent/shadow/protocol.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kMarkNs = 20'000;  // both calls of one range, and what cutting a mapping costs
constexpr size_t kMostAreas = 4096;  // to be looked through while the rank stands still
constexpr int64_t kMemoryCacheNs =
    20 * kNsPerSecond;  // for a prediction the memory map may be so old
constexpr int64_t kFailedReadNs = 2 * kNsPerSecond;  // what was in the way may pass
constexpr int64_t kMemoryCacheReads = 1000;          // or so many times what it took to read

}  // namespace

absl::Status CheckThreads(const std::vector<int32_t>& threads, int32_t team) {
  if (static_cast<int64_t>(threads.size()) == team) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "%d of its %d threads meet at the loop: another one might fork while memory is marked", team,
      threads.size()));
}

// What does not change from one moment to the next.
absl::Status TrimmedForks::MayTrim(int32_t team) const {
  if (stuck_marks_ > 0)
    return absl::FailedPreconditionError("the kernel did not take back an earlier mark");
  ASSIGN_OR_RETURN(std::vector<int32_t> threads, ProcFs().Threads(rank_.info.pid));
  return CheckThreads(threads, team);
}

absl::StatusOr<TrimWork> TrimmedForks::Begin(const Footprint& footprint, int32_t team) {
  RETURN_IF_ERROR(MayTrim(team));
  TrimWork work;
  work.footprint = footprint;
  ASSIGN_OR_RETURN(work.facts, forecast_.Facts());
  const int64_t begin = SystemClock().MonotonicNs();
  ASSIGN_OR_RETURN(work.areas, ReadMemoryAreas(rank_.info.pid));
  const int64_t took = SystemClock().MonotonicNs() - begin;
  if (took > rank_.options.max_stop_ns)
    return absl::FailedPreconditionError(
        absl::StrFormat("to look at its memory takes %.1f ms", static_cast<double>(took) / 1e6));
  if (work.areas.size() > kMostAreas)
    return absl::FailedPreconditionError(absl::StrCat("it has ", work.areas.size(), " mappings"));
  ASSIGN_OR_RETURN(std::vector<OpenFile> files, ReadOpenFiles(rank_.info.pid));
  RETURN_IF_ERROR(JudgeTrim(work.areas, files, work.facts.pinned));
  ASSIGN_OR_RETURN(std::vector<int32_t> all, ProcFs().Pids());
  RETURN_IF_ERROR(CheckAlone(rank_.info.pid, all));
  return work;
}

ShadowPrediction TrimmedForks::Predict(const Footprint& footprint, int32_t team) {
  ShadowPrediction prediction = forecast_.Predict();
  if (!prediction.status.ok()) return prediction;
  prediction.status = MayTrim(team);  // loops of one rank have teams of their own
  if (!prediction.status.ok()) return prediction;
  const int64_t now = SystemClock().MonotonicNs();
  if (cached_until_ns_ == 0 || now >= cached_until_ns_) {
    cached_ = Begin(footprint, team);
    const int64_t end = SystemClock().MonotonicNs();
    cached_until_ns_ = end + std::max(cached_.ok() ? kMemoryCacheNs : kFailedReadNs,
                                      kMemoryCacheReads * (end - now));
  }
  prediction.status = cached_.status();
  if (!cached_.ok()) return prediction;
  // Where the registers of the team point to is known only when it stands still.
  const TrimmedFork trimmed_fork =
      WithoutPointers(ChooseTrim(cached_->areas, footprint, {}), footprint, team);
  const MemoryFacts facts = Trimmed(cached_->facts, trimmed_fork);
  prediction.fork_ns =
      forecast_.cost().ForkNs(facts) + kMarkNs * static_cast<int64_t>(trimmed_fork.ranges.size());
  prediction.later_fault_ns = forecast_.cost().LaterFaultNs(facts);
  return prediction;
}

void TrimmedForks::AddStuckMarks(uint32_t ranges) {
  stuck_marks_ += static_cast<int32_t>(std::min(ranges, kMaxTrims));
}

}  // namespace perfd::agent
