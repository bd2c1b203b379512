// agent/experiment/lease_table.h - what the daemon has told of job time and of leases, where the experimenters find it.
//
// Shape    the link writes, experimenters read. Newer news replace older ones.
// Bounds   kMostProfiles charges; the oldest goes.
// Threads  thread-safe.
#ifndef AGENT_EXPERIMENT_LEASE_TABLE_H_
#define AGENT_EXPERIMENT_LEASE_TABLE_H_

#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "core/model/pause_lease.h"

namespace perfd::agent {

class LeaseTable {
 public:
  static constexpr size_t kMostProfiles = 64;

  void SetClock(const ClockReading& reading) {
    MutexLock lock(&mutex_);
    clock_ = reading;
  }
  std::optional<ClockReading> clock() const {
    MutexLock lock(&mutex_);
    return clock_;
  }
  void SetCharge(const std::string& profile_id, double charge) {
    MutexLock lock(&mutex_);
    for (auto& [id, known] : charges_) {
      if (id == profile_id) {
        known = charge;
        return;
      }
    }
    charges_.emplace_back(profile_id, charge);
    if (charges_.size() > kMostProfiles) charges_.pop_front();
  }
  // 0: not told.
  double charge(const std::string& profile_id) const {
    MutexLock lock(&mutex_);
    for (const auto& [id, known] : charges_) {
      if (id == profile_id) return known;
    }
    return 0;
  }

 private:
  mutable Mutex mutex_;
  std::optional<ClockReading> clock_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::pair<std::string, double>> charges_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_LEASE_TABLE_H_
