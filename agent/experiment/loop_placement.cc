// LoopExperiment: where copies stand when they run. A shadow runs the same instance again and again, and a branch predictor of
// our days knows thousands of branches in a row after three times: what the rank decides anew each time would cost nothing.
// So no run of a shadow stands where one of the same copy stood before, as far as places go round.
#include <algorithm>
#include <cmath>
#include <map>

#include "agent/experiment/loop_experiment.h"

namespace perfd::agent {
namespace {

constexpr double kLeastNs =
    20'000;  // of a run: shorter ones would mostly fetch the code of a new place
constexpr double kTooSlow = 0.10;  // farther from live, and the rank may know its branches, too
constexpr int kOneRuns = 4;        // at one place: then its branches are known
constexpr int kNewRuns = 3;
constexpr uint32_t kFirstShadows = 3;  // one may have met an instance that is longer than others

// The best run of each thread, and of these the slowest: a machine that does other things makes runs longer, none shorter.
// 0: there is none.
double BestCycles(const ShadowAnswer& answer, const std::vector<RunSpec>& runs, bool at_new) {
  std::map<int32_t, uint64_t> best;
  for (const ShadowRun& run : answer.runs) {
    const auto index = static_cast<size_t>(run.run);
    if (!run.ok || index >= runs.size() || runs[index].variant != kRefIndex || runs[index].learn ||
        (runs[index].place > 0) != at_new)
      continue;
    uint64_t& least = best.try_emplace(run.thread, run.cycles).first->second;
    least = std::min(least, run.cycles);
  }
  uint64_t slowest = 0;
  for (const auto& [thread, cycles] : best) slowest = std::max(slowest, cycles);
  return static_cast<double>(slowest);
}

}  // namespace

// Once it is known how long an instance is, for all of its runs: times of both kinds must not be put together.
void LoopExperiment::OpenSites() {
  new_placements_ = InstancesNs() >= kLeastNs && !CopyOf(kRefIndex).shifts.empty();
}

void LoopExperiment::Place(std::vector<RunSpec>& runs) const {
  std::map<int32_t, int32_t> next;
  for (RunSpec& run : runs) run.place = new_placements_ ? next[run.variant]++ : 0;
}

// REF at one place until it knows its branches, then at others.
std::vector<RunSpec> LoopExperiment::AssignPlacements() const {
  const bool restore = trace_.in_situ;
  std::vector<RunSpec> runs;
  if (Learns()) runs.push_back({.variant = kRefIndex, .restore = restore, .learn = true});
  for (int i = 0; i < kOneRuns; ++i) runs.push_back({.variant = kRefIndex, .restore = restore});
  for (int i = 0; i < (new_placements_ ? kNewRuns : 0); ++i)
    runs.push_back({.variant = kRefIndex, .place = 1 + i, .restore = restore});
  return runs;
}

int64_t LoopExperiment::PlacesNs() const {
  return static_cast<int64_t>(AssignPlacements().size()) * RunNs() +
         (Learns() ? 2 * RestoreNs() : 0);
}

// Where the same data come every time, the rank's branches are learnt as well, and runs at new places take longer than live.
bool LoopExperiment::NeedsPlacements() const {
  if (!new_placements_ || placements_tried_ || in_situ_ || stage_ != Stage::kMeasure ||
      runs_.empty())
    return false;
  if (live_cycles_ <= 0 || run_cycles_ <= 0 || shadows_ < runs_.front().shadow + kFirstShadows - 1)
    return false;
  return std::log(run_cycles_ / live_cycles_) > kTooSlow;
}

StepCost LoopExperiment::ChoosePlacements(RankInjector& injector, const StepRoom& room) {
  const std::vector<RunSpec> runs = AssignPlacements();
  ShadowAnswer answer;
  StepCost cost = RunShadow(injector, room, runs, trace_.in_situ, &answer);
  if (cost.pause_ns == 0 || stage_ == Stage::kDone) return cost;
  cost.predicted_ns = FixedCost(room.prediction) + PlacesNs();
  if (room.trim && MissedMemory(answer)) return cost;
  if (!LeftEarly(answer, runs)) ReadPlacements(answer, runs);
  return cost;
}

// Within one shadow runs differ by their places only; how those at new ones compare with live is known from all instances so far.
void LoopExperiment::ReadPlacements(const ShadowAnswer& answer, const std::vector<RunSpec>& runs) {
  placements_tried_ = true;
  const double one = BestCycles(answer, runs, false), others = BestCycles(answer, runs, true);
  if (one <= 0 || others <= 0 || live_cycles_ <= 0) return;
  const double factor = one / others;
  const double gap = std::log(run_cycles_ / live_cycles_);
  if (gap <= kTooSlow || std::abs(std::log(run_cycles_ * factor / live_cycles_)) >= gap) return;
  new_placements_ = false;
  run_cycles_ *= factor;
  ForgetRuns();
}

}  // namespace perfd::agent
