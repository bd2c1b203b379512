#include "agent/discover/process_scan.h"

#include <algorithm>

namespace perfd::agent {
namespace {

// Where in the second half of the holding time a process is judged anew.
int64_t Spread(int32_t pid) {
  constexpr int64_t kSlots = 64;
  return ProcessScan::kHoldNs / kSlots * (pid % kSlots);
}

}  // namespace

const Verdict* ProcessScan::Recall(int32_t pid, const ProcessStamp& stamp) const {
  const auto found = entries_.find(pid);
  if (found == entries_.end()) return nullptr;
  const Entry& entry = found->second;
  const bool holds = entry.start_ticks == stamp.start_ticks && entry.command == stamp.command &&
                     clock_->MonotonicNs() < entry.judge_again_ns;
  // A rank that has ended is not accepted as long as its zombie is listed.
  const bool ended = stamp.state == 'Z' || stamp.state == 'X';
  return holds && !(ended && entry.verdict.kind == Verdict::Kind::kAccepted) ? &entry.verdict
                                                                             : nullptr;
}

void ProcessScan::Remember(const ProcessStamp& stamp, const Verdict& verdict) {
  const int32_t pid = verdict.candidate.pid;
  if (verdict.kind == Verdict::Kind::kStuck) {
    entries_.erase(pid);
    return;
  }
  Entry& entry = entries_[pid];
  entry = {stamp.start_ticks, stamp.command, clock_->MonotonicNs() + kHoldNs + Spread(pid),
           verdict};
  if (verdict.kind == Verdict::Kind::kNoMatch)
    entry.verdict = {};  // thousands of them: keep no arguments
}

void ProcessScan::Retain(const std::vector<int32_t>& pids) {
  const auto ended = [&](int32_t pid) {
    return !std::binary_search(pids.begin(), pids.end(), pid);
  };
  absl::erase_if(entries_, [&](const auto& entry) { return ended(entry.first); });
  std::erase_if(numbers_.by_process, [&](const auto& given) { return ended(given.first.first); });
}

}  // namespace perfd::agent
