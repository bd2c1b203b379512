// daemon/relay/frame_budget.h - how many frames one client may send beside what they carry.
//
// Shape    each frame costs kFrameCost, each PING kPingCost; what DATA of either side carries, calls and time bring something in.
// Units    bytes of DATA.
// Why      a frame without a call takes gRPC time, and a PING after its end 1.3 KB each.
// Threads  thread-compatible.
#ifndef DAEMON_RELAY_FRAME_BUDGET_H_
#define DAEMON_RELAY_FRAME_BUDGET_H_

#include <algorithm>
#include <cstdint>

#include "core/base/clock.h"

namespace perfd::daemon {

class FrameBudget {
 public:
  static constexpr int64_t kFrameCost = 64;
  static constexpr int64_t kPingCost = 16 * kFrameCost;
  static constexpr int64_t kCall = 32 * kFrameCost;
  static constexpr int64_t kPerSecond = 100 * kFrameCost;
  static constexpr int64_t kMost = 4096 * kFrameCost;

  void Earn(int64_t bytes) { left_ = std::min(left_ + bytes, kMost); }
  void Tick(int64_t now_ns) {
    const int64_t passed_ns = std::min(now_ns - last_ns_, 60 * kNsPerSecond);
    const int64_t earned = passed_ns * kPerSecond / kNsPerSecond;
    if (earned == 0) return;  // not yet
    if (last_ns_ > 0) Earn(earned);
    last_ns_ = now_ns;
  }
  // False: there is not so much left.
  bool Spend(int64_t cost) {
    left_ -= cost;
    return left_ >= 0;
  }

 private:
  int64_t left_ = kMost;
  int64_t last_ns_ = 0;
};

}  // namespace perfd::daemon

#endif  // DAEMON_RELAY_FRAME_BUDGET_H_
