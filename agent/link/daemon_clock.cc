#include "agent/link/daemon_clock.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/mutex.h"

namespace perfd::agent {
namespace {

constexpr int64_t kLatestUnixNs =
    INT64_MAX / 2;  // in the year 2116: sums and differences stay in range

bool IsTime(int64_t unix_ns) {
  return unix_ns > 0 && unix_ns <= kLatestUnixNs;
}

}  // namespace

void DaemonClock::Welcomed(int64_t daemon_unix_ns) {
  {
    MutexLock lock(&mutex_);
    known_ = false;
  }
  Told(daemon_unix_ns);
}

void DaemonClock::Told(int64_t daemon_unix_ns) {
  if (!IsTime(daemon_unix_ns)) return;
  MutexLock lock(&mutex_);
  told_ns_ = here_.MonotonicNs();
  const int64_t told = daemon_unix_ns - told_ns_;
  before_ns_ = known_ ? latest_ns_ : told;
  latest_ns_ = told;
  known_ = true;
}

int64_t DaemonClock::AheadNs() const {
  MutexLock lock(&mutex_);
  if (!known_) return 0;
  const int64_t now_ns = here_.MonotonicNs();
  const int64_t ahead_ns = std::clamp<int64_t>(here_.UnixNs(), 0, kLatestUnixNs) -
                           (std::max(latest_ns_, before_ns_) + now_ns);
  const double agree_ns =
      static_cast<double>(kAgreeNs) + kMostSlew * static_cast<double>(now_ns - told_ns_);
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

}  // namespace perfd::agent
