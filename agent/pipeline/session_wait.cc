// The profile of a job that has only just begun: waiting for its first rank.
#include <time.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/discover/candidate.h"
#include "agent/pipeline/session.h"

namespace perfd {
namespace {

constexpr int64_t kLookNs = 250 * kNsPerMs;
constexpr int64_t kSlowestLookNs = 5 * kNsPerSecond;
constexpr int64_t kLookShare = 200;  // looking may use 1/200 of a core

int64_t ThreadCpuNs() {
  timespec ts{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  return int64_t{ts.tv_sec} * kNsPerSecond + ts.tv_nsec;
}

// A batch script's shell is there long before the program it runs.
std::set<std::pair<int32_t, uint64_t>> Programs(const absl::StatusOr<Discovery>& discovery) {
  std::set<std::pair<int32_t, uint64_t>> programs;
  if (!discovery.ok()) return programs;
  for (const RankInfo& rank : discovery->ranks) {
    if (!IsWrapper(rank.command)) programs.emplace(rank.pid, rank.start_ticks);
  }
  return programs;
}

}  // namespace

// True when a program of the job was seen twice in a row: scripts run many that end at once, and are no ranks.
bool Session::AwaitRanks(int64_t end_ns) {
  ProcessScan scan(*tools_.clock);
  std::set<std::pair<int32_t, uint64_t>> before;
  while (!stop_ && tools_.clock->MonotonicNs() < end_ns) {
    const int64_t begin_ns = ThreadCpuNs();
    const auto programs = Programs(
        tools_.finder->Find(request_.spec.target, request_.spec.ranks, request_.requester, &scan));
    const bool stays = std::any_of(programs.begin(), programs.end(),
                                   [&](const auto& program) { return before.contains(program); });
    if (stays) return true;
    before = programs;
    Rest(std::clamp(kLookShare * (ThreadCpuNs() - begin_ns), kLookNs, kSlowestLookNs));
  }
  return false;
}

bool Session::DiscoverInTime() {
  const int64_t end_ns = tools_.clock->MonotonicNs() + request_.wait_ns;
  while (AwaitRanks(end_ns)) {
    // Anew, as if it were the first look: only that one chooses the job's cgroup.
    scan_ = ProcessScan(*tools_.clock);
    const auto discovery =
        tools_.finder->Find(request_.spec.target, request_.spec.ranks, request_.requester, &scan_);
    if (!discovery.ok() || discovery->ranks.empty()) continue;
    if (OpenSource(*discovery)) {
      for (const std::string& warning : discovery->warnings)
        notices_.Say(Notice::Severity::kWarning, warning, 0);
      return true;
    }
    if (source_ == nullptr || !notices_.empty()) {
      Announce(NodeProgress::Phase::kFailed);
      return false;
    }
    source_.reset();
    Rest(kLookNs);
  }
  if (!suspended_) Announce(NodeProgress::Phase::kFinished);
  return false;
}

}  // namespace perfd
