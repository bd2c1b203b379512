#include "agent/shadow/run/fault_watch.h"

#include <algorithm>

#include "core/base/clock.h"

namespace perfd::agent {
namespace {

constexpr int64_t kSoonestNs = 400 * kNsPerMs;
constexpr int64_t kLatestNs = 30 * kNsPerSecond;
constexpr int64_t kShortestQuietNs = 500 * kNsPerMs;

}  // namespace

double FaultWatch::Since(const Reading& then, int64_t now_ns, uint64_t faults) {
  const uint64_t more = faults - std::min(faults, then.faults);
  return static_cast<double>(more) / static_cast<double>(std::max<int64_t>(1, now_ns - then.ns));
}

void FaultWatch::Observe(int64_t now_ns, uint64_t faults) {
  if (ended_) return;
  if (!quiet_since_) quiet_since_ = Reading{now_ns, faults};
  if (now_ns - quiet_since_->ns >= kShortestQuietNs)
    own_rate_ = Since(*quiet_since_, now_ns, faults);
}

void FaultWatch::ShadowEnded(int64_t now_ns, uint64_t faults) {
  ended_ = Reading{now_ns, faults};
}

std::optional<uint64_t> FaultWatch::LaterFaults(int64_t now_ns, uint64_t faults) {
  if (!ended_ || now_ns - ended_->ns < kSoonestNs) return std::nullopt;
  const Reading then = *ended_;
  ended_.reset();
  quiet_since_ = Reading{now_ns, faults};
  if (now_ns - then.ns > kLatestNs || faults < then.faults) return std::nullopt;
  const double own = own_rate_ * static_cast<double>(now_ns - then.ns);
  return static_cast<uint64_t>(std::max(0.0, static_cast<double>(faults - then.faults) - own));
}

}  // namespace perfd::agent
