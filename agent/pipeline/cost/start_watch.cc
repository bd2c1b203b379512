#include "agent/pipeline/cost/start_watch.h"

#include <utility>

#include "core/base/clock.h"

namespace perfd::agent {
namespace {

constexpr int64_t kShortestLookNs = 50 * kNsPerMs;  // shorter ones count with the next
constexpr int64_t kRowNs = kNsPerSecond;
constexpr int kLeastLooks = 2;     // one may be a burst
constexpr uint64_t kMostGone = 4;  // so many times as many as are there

}  // namespace

std::vector<BusyStarter> StartWatch::Probe(const StartLimit& limit,
                                           const std::map<int32_t, uint64_t>& threads,
                                           int64_t now_ns) {
  const int64_t span_ns = now_ns - last_ns_;
  if (span_ns < kShortestLookNs) return {};
  last_ns_ = now_ns;
  const std::map<int32_t, Row> before = std::exchange(rows_, {});
  std::vector<BusyStarter> busy;
  for (const auto& [rank, starts] : std::exchange(starts_, {})) {
    const auto living = threads.find(rank);
    if (living == threads.end() || living->second == 0) continue;  // gone, or nobody can say
    const auto cost_ns = limit.start_ns * static_cast<double>(starts);
    if (cost_ns <= limit.budget_ratio * static_cast<double>(span_ns) ||
        starts <= kMostGone * living->second)
      continue;
    const auto known = before.find(rank);
    Row row = known == before.end() ? Row{} : known->second;
    row.starts += starts;
    row.ns += span_ns;
    ++row.looks;
    if (row.ns < kRowNs || row.looks < kLeastLooks) {
      rows_[rank] = row;
      continue;
    }
    const double per_ns = static_cast<double>(row.starts) / static_cast<double>(row.ns);
    busy.push_back({.pid = rank,
                    .starts_per_second = per_ns * kNsPerSecond,
                    .cost_ratio = per_ns * limit.start_ns,
                    .budget_ratio = limit.budget_ratio});
  }
  return busy;
}

}  // namespace perfd::agent
