#include "agent/sample/pace/duty_cycle.h"

#include <algorithm>

namespace perfd::agent {
namespace {

constexpr double kMostOwed = 4;

}  // namespace

void DutyCycle::SetShare(double share) {
  share_ = share >= 0 ? std::min(share, 1.0) : 0;
}

// Drawn independently of when the last one was, but for a slight pull: at a debt of kMostOwed slots one is sure to come.
bool DutyCycle::Next() {
  if (share_ >= 1) {
    owed_ = 0;
    return true;
  }
  const double chance = share_ + owed_ / kMostOwed;
  const bool on = std::uniform_real_distribution<double>(0, 1)(random_) < chance;
  owed_ += share_ - (on ? 1 : 0);
  return on;
}

}  // namespace perfd::agent
