#include "agent/link/daemon_clock.h"

#include <algorithm>
#include <cstdlib>

namespace perfd {
namespace {

constexpr int64_t kLatestUnixNs =
    INT64_MAX / 2;  // in the year 2116: sums and differences stay in range

}  // namespace

void DaemonClock::Told(int64_t daemon_unix_ns) {
  absl::MutexLock lock(&mutex_);
  daemon_unix_ns_ = daemon_unix_ns > 0 && daemon_unix_ns <= kLatestUnixNs ? daemon_unix_ns : 0;
  told_ns_ = here_.MonotonicNs();
}

int64_t DaemonClock::AheadNs() const {
  absl::MutexLock lock(&mutex_);
  if (daemon_unix_ns_ == 0) return 0;
  const int64_t passed_ns = here_.MonotonicNs() - told_ns_;
  const int64_t ahead_ns =
      std::clamp<int64_t>(here_.UnixNs(), 0, kLatestUnixNs) - (daemon_unix_ns_ + passed_ns);
  const double agree_ns =
      static_cast<double>(kAgreeNs) + kMostSlew * static_cast<double>(passed_ns);
  return static_cast<double>(std::abs(ahead_ns)) > agree_ns ? ahead_ns : 0;
}

void ToDaemonTime(int64_t ahead_ns, Window& window) {
  if (ahead_ns == 0) return;
  const auto there = [ahead_ns](int64_t unix_ns) {
    return std::max<int64_t>(0, std::clamp<int64_t>(unix_ns, 0, kLatestUnixNs) - ahead_ns);
  };
  window.start_unix_ns = there(window.start_unix_ns);
  for (AuditEntry& entry : window.audit) entry.unix_ns = there(entry.unix_ns);
}

}  // namespace perfd
