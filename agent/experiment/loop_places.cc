// LoopExperiment: where copies stand when they run. A shadow runs the same instance again and again, and a branch predictor of
// our days knows thousands of branches in a row after three times: what the rank decides anew each time would cost nothing.
// So no run of a shadow stands where one of the same copy stood before, as far as places go round.
#include <cmath>
#include <map>

#include "agent/experiment/loop_experiment.h"

namespace perfd {
namespace {

constexpr double kLeastNs = 20'000;  // of a run: shorter ones would mostly fetch the code of a new place
constexpr double kTooSlow = 0.10;    // farther from live, and the rank may know its branches, too

}  // namespace

bool LoopExperiment::AtNewPlaces() const {
  const bool one = places_ == Places::kTryOne || places_ == Places::kOne;
  return !one && InstancesNs() >= kLeastNs && !CopyOf(kRefIndex).shifts.empty();
}

void LoopExperiment::Place(std::vector<RunWish>& runs) const {
  if (!AtNewPlaces()) return;
  std::map<int32_t, int32_t> next;
  for (RunWish& run : runs) run.place = next[run.variant]++;
}

// Where the same data come every time, the rank's branches are learnt as well, and runs at new places take longer than live.
// Then one place is tried, and what is nearer to live is kept. False: the runs so far do not count.
bool LoopExperiment::KeepsPlaces() {
  const bool decided = places_ == Places::kNewAfterAll || places_ == Places::kOne;
  if (decided || live_cycles_ <= 0 || run_cycles_ <= 0) return true;
  const double gap = std::log(run_cycles_ / live_cycles_);
  if (places_ == Places::kNew) {
    if (!AtNewPlaces() || gap <= kTooSlow) return true;
    places_ = Places::kTryOne;
    new_gap_ = gap;
  } else {
    places_ = std::abs(gap) <= new_gap_ ? Places::kOne : Places::kNewAfterAll;
    if (places_ == Places::kOne) return true;
  }
  ForgetRuns();
  return false;
}

}  // namespace perfd
