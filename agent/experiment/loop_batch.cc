// LoopExperiment: instances too short to be timed one by one. Repeated in a shadow, such an instance is learnt by the branch
// predictor, and reading the clock takes longer than it does. Where the code between two instances can be copied, a run goes on
// over many of them (agent/variant/batch.h), and its time is told per instance.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/experiment/loop_experiment.h"

namespace perfd::agent {
namespace {

constexpr double kBatchNs =
    100'000;  // of a run: reading the clock is nothing then, nor is the code of a new place
constexpr uint64_t kMostInstances = 10'000;
constexpr uint64_t kLeastInstances = 4;
constexpr int32_t kMostEarlyEnds = 8;  // chains in a row that say nothing
constexpr double kMostAround =
    1.7;  // a chain's time per instance over that of the loop alone, live
constexpr char kInARow[] = "in a row";

}  // namespace

void LoopExperiment::ChooseBatch() {
  if (in_situ_ || batch_tried_ || InstanceNs() > kShortNs) return;
  batch_tried_ = true;
  if (!installed_.batches.ok()) {
    RunAlone(std::string(installed_.batches.message()));
    return;
  }
  const double instances = kBatchNs / std::max(1.0, InstanceNs());
  instances_ = std::clamp(static_cast<uint64_t>(instances), kLeastInstances, kMostInstances);
  batch_refusals_ = NotInABatch();
  // What lies between keeps its own state on the stack: nothing can be run twice before it is known what to bring back.
  trace_alone_ = true;
}

void LoopExperiment::RunAlone(const std::string& why) {
  instances_ = 0;
  batch_refusals_ = {
      {kInARow, 0,
       absl::StrFormat("an instance of %.2f us is too short to be repeated as it runs live, and "
                       "many cannot be run in a row: %s",
                       live_cycles_ / setup_.ticks_per_ns / 1e3, why),
       1}};
}

// False: instances are looked at alone from now on. `failure`: of its first run; empty: there are figures of some.
bool LoopExperiment::AcceptsBatch(const std::string& failure) {
  if (instances_ == 0) return true;
  std::string why = failure;
  if (why.empty() && run_cycles_ > kMostAround * live_cycles_)
    why = absl::StrFormat("with what lies between, one takes %.1f times as long",
                          run_cycles_ / live_cycles_);
  if (why.empty()) return true;
  RunAlone(why);
  trace_alone_ = protocol_chosen_ = false;
  evict_ = Evict::kNothing;
  new_placements_ = placements_tried_ = false;
  run_cycles_ = 0;
  trips_.clear();
  trips_checked_.clear();
  trip_refusals_.clear();
  trim_misses_ = trim_failures_ = 0;
  trace_ = {};
  ForgetRuns();
  stage_ = Stage::kProbe;
  return false;
}

// To `most` passes in all, where one instance makes `passes`. False: so that the look is to be made again.
bool LoopExperiment::ShortenBatch(uint64_t passes, uint64_t most) {
  const uint64_t fewer = most / std::max<uint64_t>(1, passes);
  if (fewer < kLeastInstances || fewer >= instances_)
    return AcceptsBatch(absl::StrCat("one of them makes ", passes, " passes"));
  instances_ = fewer;
  return false;
}

// By a path that copies leave out, or where the loop around ends; or runs of one thread did not all come as far, since what
// they depend on was not brought back. Such a shadow says nothing of a chain.
bool LoopExperiment::LeftEarly(const ShadowAnswer& answer, const std::vector<RunSpec>& runs) {
  if (instances_ == 0) return false;
  std::map<int32_t, std::pair<uint64_t, uint64_t>> turns;  // of each thread: fewest, most
  for (const ShadowRun& run : answer.runs) {
    const auto index = static_cast<size_t>(run.run);
    if (!run.ok || index >= runs.size() || Entered(runs[index].variant)) continue;
    auto& [least, most] = turns.try_emplace(run.thread, run.instances, run.instances).first->second;
    least = std::min(least, run.instances);
    most = std::max(most, run.instances);
  }
  uint64_t least = ~uint64_t{0};
  bool equal = true;
  for (const auto& [thread, range] : turns) {
    least = std::min(least, range.first);
    equal = equal && range.first == range.second;
  }
  const bool traced_alone = turns.empty();
  if (traced_alone) {
    for (const ShadowRun& run : answer.runs) least = std::min(least, run.instances);
  }
  if (equal && least >= kLeastInstances) {
    early_ends_ = 0;
    return false;
  }
  if (++early_ends_ < kMostEarlyEnds) return true;
  const std::string why = equal ? absl::StrCat("it is left after ", least, " of them")
                                : "its runs do not all come as far";
  return !AcceptsBatch(why);
}

// Copies that count tell how often the loop was entered, others the turns of the loop around it.
bool LoopExperiment::Entered(int32_t variant) const {
  return variant == kCountIndex || variant == kTraceIndex || IsTripCheck(variant);
}

// Of each thread: how many instances all of these runs went on over. By the counted run where there is one.
std::map<int32_t, double> LoopExperiment::InstancesOf(const ShadowAnswer& answer,
                                                      const std::vector<RunSpec>& runs) const {
  std::map<int32_t, double> instances;
  for (const ShadowRun& run : answer.runs) {
    const auto index = static_cast<size_t>(run.run);
    if (!run.ok || index >= runs.size()) continue;
    const bool counted = runs[index].variant == kCountIndex;
    const auto number = static_cast<double>(run.instances);
    if (counted)
      instances[run.thread] = number;
    else
      instances.try_emplace(run.thread, number);
  }
  return instances;
}

// What an instance takes with all that lies between, before a schedule is made for many of them.
StepCost LoopExperiment::TimeBatch(RankInjector& injector, const StepRoom& room) {
  std::vector<RunSpec> runs = AssignPlacements();
  runs.push_back({.variant = kCountIndex, .restore = trace_.in_situ});
  ShadowAnswer answer;
  const StepCost cost = RunShadow(injector, room, runs, trace_.in_situ, &answer);
  if (cost.pause_ns == 0 || stage_ == Stage::kDone) return cost;
  if (room.trim && MissedMemory(answer)) return cost;
  if (LeftEarly(answer, runs)) return cost;
  std::map<int32_t, double> instances = InstancesOf(answer, runs);
  std::map<int32_t, double>
      best;  // of each thread: a machine that does other things makes runs longer, none shorter
  for (const ShadowRun& run : answer.runs) {
    if (!run.ok) {
      AcceptsBatch(absl::StrCat("REF failed: ", run.failure));
      return cost;
    }
    const RunSpec& request = runs[static_cast<size_t>(run.run)];
    if (request.variant != kRefIndex || (new_placements_ && request.place == 0)) continue;
    const double cycles = static_cast<double>(run.cycles) / instances[run.thread];
    double& least = best.try_emplace(run.thread, cycles).first->second;
    least = std::min(least, cycles);
  }
  for (const auto& [thread, cycles] : best) run_cycles_ = std::max(run_cycles_, cycles);
  if (new_placements_) ReadPlacements(answer, runs);
  AcceptsBatch("");
  return cost;
}

// The copy of a variant that is run.
const CodeCopy& LoopExperiment::CopyOf(size_t variant) const {
  return instances_ > 0 && Batched(static_cast<int32_t>(variant)) ? *installed_.batched[variant]
                                                                  : installed_.copies[variant];
}

bool LoopExperiment::Batched(int32_t variant) const {
  const auto at = static_cast<size_t>(variant);
  return variant >= 0 && at < installed_.batched.size() && installed_.batched[at].ok();
}

std::vector<Refusal> LoopExperiment::NotInABatch() const {
  std::vector<Refusal> refusals;
  for (size_t i = 0; i < installed_.names.size(); ++i) {
    const auto variant = static_cast<int32_t>(i);
    if (IsTripCheck(variant) || (Batched(variant) && Batched(BaseOf(variant)))) continue;
    const int32_t missing = Batched(variant) ? BaseOf(variant) : variant;
    refusals.push_back(
        {installed_.names[i].Text(), 0,
         absl::StrCat("instances are run in a row: ",
                      installed_.batched[static_cast<size_t>(missing)].status().message()),
         1});
  }
  return refusals;
}

}  // namespace perfd::agent
