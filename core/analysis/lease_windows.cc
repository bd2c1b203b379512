#include "core/analysis/lease_windows.h"

#include <algorithm>
#include <cstdlib>

namespace perfd {
namespace {

// A window for each shadow of a hundredth of the longest that the budget buys: cheaper ones must wait for windows, dearer
// ones for the budget.
constexpr double kUsualShadow = 0.01;
constexpr int64_t kShortestPeriodNs = 100'000'000;
constexpr int64_t kLongestPlannedNs = 2'000'000'000;
// The rest of the period: for pauses that begin at a window's end, and for getting ready.
constexpr double kWindowShare = 0.8;

int64_t Drifted(int64_t ns) {
  return static_cast<int64_t>(kDrift * static_cast<double>(std::abs(ns)));
}

}  // namespace

PauseLease PlanLease(const BudgetSpec& budget, int32_t nodes) {
  const double ratio = std::clamp(budget.overhead_ratio, 1e-6, 0.5);
  const double period = kUsualShadow * static_cast<double>(budget.shadow_ns) / ratio;
  PauseLease lease;
  lease.period_ns = static_cast<int64_t>(std::clamp(period, static_cast<double>(kShortestPeriodNs),
                                                    static_cast<double>(kLongestPlannedNs)));
  lease.window_ns = static_cast<int64_t>(kWindowShare * static_cast<double>(lease.period_ns));
  lease.nodes = nodes;
  return lease;
}

int64_t ErrorAt(const ClockReading& reading, int64_t here_ns) {
  return reading.error_ns + Drifted(here_ns - reading.here_ns);
}

bool Trusted(const ClockReading& reading, int64_t here_ns) {
  return reading.job_ns > 0 && ErrorAt(reading, here_ns) <= kMostClockErrorNs;
}

int64_t JobTime(const ClockReading& reading, int64_t here_ns) {
  return reading.job_ns + (here_ns - reading.here_ns);
}

int64_t HereTime(const ClockReading& reading, int64_t job_ns) {
  return reading.here_ns + (job_ns - reading.job_ns);
}

LeaseWindow WindowOf(const PauseLease& lease, uint64_t generation, int level) {
  const int64_t begin = static_cast<int64_t>(generation) * lease.period_ns;
  const int64_t more = ((int64_t{1} << std::clamp(level, 0, kMostLevel)) - 1) * lease.period_ns;
  return {generation, begin, begin + more + lease.window_ns};
}

uint64_t NextGeneration(const PauseLease& lease, int64_t job_ns) {
  if (job_ns <= 0) return 0;
  return static_cast<uint64_t>((job_ns + lease.period_ns - 1) / lease.period_ns);
}

int LevelFor(const PauseLease& lease, int64_t wait_ns) {
  int level = 0;
  while (level < kMostLevel &&
         ((int64_t{1} << level) - 1) * lease.period_ns + lease.window_ns < wait_ns)
    ++level;
  return level;
}

// The round moves the first choice on by one: else loops whose windows begin at multiples would meet the same turn for ever.
std::optional<size_t> LoopOfGeneration(uint64_t generation, size_t loops,
                                       const std::function<bool(size_t)>& open) {
  if (loops == 0) return std::nullopt;
  const size_t first = static_cast<size_t>((generation + generation / loops) % loops);
  for (size_t i = 0; i < loops; ++i) {
    const size_t loop = (first + i) % loops;
    if (open(loop)) return loop;
  }
  return std::nullopt;
}

void ClockExchange::Learn(int64_t sent_ns, int64_t received_ns, int64_t here_ns) {
  if (sent_ns <= 0 || here_ns < 0 || received_ns < sent_ns) return;
  const int64_t half = (received_ns - sent_ns + 1) / 2;
  readings_.push_back({here_ns, sent_ns + half, half});
  if (readings_.size() > kReadings) readings_.pop_front();
}

std::optional<ClockReading> ClockExchange::Best(int64_t job_ns) const {
  const auto error = [job_ns](const ClockReading& r) {
    return r.error_ns + Drifted(job_ns - r.job_ns);
  };
  const auto best = std::min_element(
      readings_.begin(), readings_.end(),
      [&](const ClockReading& a, const ClockReading& b) { return error(a) < error(b); });
  return best == readings_.end() ? std::nullopt : std::optional(*best);
}

}  // namespace perfd
