// The profile of a job that has only just begun: waiting for its first rank.
#include <algorithm>
#include <set>
#include <utility>

#include "agent/pipeline/session.h"

namespace perfd::agent {
namespace {

constexpr int64_t kScanNs = 200 * kNsPerMs;  // also the longest sleep: Stop ends the waiting then
constexpr int64_t kSlowestProbeNs = 5 * kNsPerSecond;
constexpr int64_t kProbeShare = 200;  // looking may use 1/200 of a core

std::set<std::pair<int32_t, uint64_t>> Programs(const absl::StatusOr<Discovery>& discovery) {
  std::set<std::pair<int32_t, uint64_t>> programs;
  if (!discovery.ok()) return programs;
  for (const RankInfo& rank : discovery->ranks) programs.emplace(rank.pid, rank.start_ticks);
  return programs;
}

}  // namespace

void Session::RestUnlessStopped(int64_t ns) {
  for (; ns > 0 && !stop_; ns -= kScanNs) Rest(std::min(ns, kScanNs));
}

// True when a program of the job was seen twice in a row: scripts run many that end at once, and
// are no ranks. That takes two looks, however little of the time is left: the rest between them may
// be longer.
bool Session::AwaitRanks(int64_t end_ns) {
  ProcessScan scan(*tools_.clock, true);
  std::set<std::pair<int32_t, uint64_t>> before;
  for (int looks = 0; !stop_ && (looks < 2 || tools_.clock->MonotonicNs() < end_ns); ++looks) {
    const uint64_t begin_ns = CpuNs();
    const auto discovery =
        tools_.finder->Find(request_.spec.target, request_.spec.ranks, request_.requester, &scan);
    const auto cost_ns = static_cast<int64_t>(CpuNs() - begin_ns);
    RecordRefusals(discovery);
    if (!notices_.empty()) Announce(NodeProgress::Phase::kDiscovering);
    const auto programs = Programs(discovery);
    const bool stays = std::any_of(programs.begin(), programs.end(),
                                   [&](const auto& program) { return before.contains(program); });
    if (stays) return true;
    before = programs;
    RestUnlessStopped(std::clamp(kProbeShare * cost_ns, kScanNs, kSlowestProbeNs));
  }
  return false;
}

bool Session::DiscoverInTime() {
  const int64_t end_ns = tools_.clock->MonotonicNs() + request_.wait_ns;
  while (AwaitRanks(end_ns)) {
    // Anew, as if it were the first look: only that one chooses the job's cgroup.
    scan_ = ProcessScan(*tools_.clock, true);
    auto discovery =
        tools_.finder->Find(request_.spec.target, request_.spec.ranks, request_.requester, &scan_);
    RecordRefusals(discovery);
    if (!discovery.ok() || discovery->ranks.empty()) continue;
    windows_.CountAgent();  // looking out for a job costs that job nothing
    const Taken taken = OpenSource(*discovery);
    if (taken == Taken::kYes) {
      for (const std::string& warning : discovery->warnings)
        notices_.Say(Notice::Severity::kWarning, warning, 0);
      return true;
    }
    if (taken == Taken::kRefused) {
      Announce(NodeProgress::Phase::kFailed);
      return false;
    }
    source_.reset();
    RestUnlessStopped(kScanNs);
  }
  if (suspended_) return false;
  RecordLastRefusals();
  Announce(refusals_.told() ? NodeProgress::Phase::kFailed : NodeProgress::Phase::kFinished);
  return false;
}

}  // namespace perfd::agent
