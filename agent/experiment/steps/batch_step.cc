#include "agent/experiment/steps/batch_step.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/experiment/loop/figures.h"
#include "agent/experiment/loop/protocol.h"
#include "agent/experiment/steps/comparing_steps.h"

namespace perfd::agent {
namespace {

constexpr double kBatchNs =
    100'000;  // of a run: reading the clock is nothing then, nor is the code of a new place
constexpr uint64_t kMostInstances = 10'000;
constexpr uint64_t kLeastInstances = 4;
constexpr int32_t kMostEarlyEnds = 8;  // one after another, that say nothing
constexpr double kMostAround =
    1.7;  // a batch's time per instance over that of the loop alone, live

std::vector<Refusal> NotInABatch(const LoopKnowledge& known) {
  const InstalledLoop& installed = known.installed;
  std::vector<Refusal> refusals;
  for (size_t i = 0; i < installed.names.size(); ++i) {
    const auto variant = static_cast<int32_t>(i);
    const bool batched = IsBatched(known, variant);
    if (IsTripCheck(known, variant) || (batched && IsBatched(known, BaseOf(known, variant))))
      continue;
    const int32_t missing = batched ? BaseOf(known, variant) : variant;
    const absl::Status why = installed.batched[static_cast<size_t>(missing)].status();
    refusals.push_back({installed.names[i].Text(), 0,
                        absl::StrCat("instances are run in a row: ", why.message()), 1});
  }
  return refusals;
}

// How far a shadow's runs went: how many instances at least, and whether all runs of a thread as far.
struct Turns {
  uint64_t least = ~uint64_t{0};
  bool equal = true;
};

Turns TurnsOf(const LoopKnowledge& known, const ShadowAnswer& answer,
              const std::vector<RunSpec>& runs) {
  std::map<int32_t, std::pair<uint64_t, uint64_t>> threads;  // fewest, most
  for (const ShadowRun& run : answer.runs) {
    const auto index = static_cast<size_t>(run.run);
    if (!run.ok || index >= runs.size() || CountsEntries(known, runs[index])) continue;
    if (runs[index].instances != 0) continue;  // it was to make so many
    auto& [least, most] =
        threads.try_emplace(run.thread, run.instances, run.instances).first->second;
    least = std::min(least, run.instances);
    most = std::max(most, run.instances);
  }
  Turns turns;
  for (const auto& [thread, range] : threads) {
    turns.least = std::min(turns.least, range.first);
    turns.equal = turns.equal && range.first == range.second;
  }
  const bool traced_alone = threads.empty();
  if (traced_alone) {
    for (const ShadowRun& run : answer.runs) turns.least = std::min(turns.least, run.instances);
  }
  return turns;
}

// Live batches count turns of the loop around.
void LearnTurns(LoopKnowledge& known, const ShadowAnswer& answer,
                const std::vector<RunSpec>& runs) {
  if (!known.live.alone) return;
  double entered = 0, turns = 0;
  std::map<int32_t, double> turns_of_threads;
  for (const ShadowRun& run : answer.runs) {
    const bool counts = CountsEntries(known, runs[static_cast<size_t>(run.run)]);
    if (run.ok && !counts) turns_of_threads[run.thread] = static_cast<double>(run.instances);
  }
  for (const ShadowRun& run : answer.runs) {
    if (!run.ok || !CountsEntries(known, runs[static_cast<size_t>(run.run)])) continue;
    entered += static_cast<double>(run.instances);
    turns += turns_of_threads[run.thread];
  }
  if (entered > 0 && turns > 0) SetFactor(known.live, turns / entered);
}

}  // namespace

void ChooseBatch(LoopKnowledge& known) {
  if (known.in_situ.on || known.batch.tried || InstanceNs(known) > kShortNs) return;
  known.batch.tried = true;
  if (!known.installed.batches.ok())
    return SetAlone(known, std::string(known.installed.batches.message()));
  const double instances = kBatchNs / std::max(1.0, InstanceNs(known));
  known.batch.instances =
      std::clamp(static_cast<uint64_t>(instances), kLeastInstances, kMostInstances);
  known.batch.refusals = NotInABatch(known);
  // What lies between keeps its own state on the stack: nothing can be run twice before it is known what to bring back.
  known.probe.trace_alone = true;
}

void CheckBatch(LoopKnowledge& known) {
  const LiveFindings& live = known.live;
  const double alone = live.alone ? live.alone->cycles : live.times.cycles;
  if (known.batch.instances == 0 || known.runs.cycles <= kMostAround * alone) return;
  ForgetBatch(known, absl::StrFormat("with what lies between, one takes %.1f times as long",
                                     known.runs.cycles / alone));
}

void ShortenBatch(LoopKnowledge& known, uint64_t passes, uint64_t most) {
  const uint64_t fewer = most / std::max<uint64_t>(1, passes);
  if (fewer < kLeastInstances || fewer >= known.batch.instances)
    ForgetBatch(known, absl::StrCat("one of them makes ", passes, " passes"));
  else
    known.batch.instances = fewer;
}

bool LearnEarlyEnd(LoopKnowledge& known, const ShadowAnswer& answer,
                   const std::vector<RunSpec>& runs) {
  if (known.batch.instances == 0) return false;
  const Turns turns = TurnsOf(known, answer, runs);
  if (turns.equal && turns.least >= kLeastInstances) {
    known.batch.early_ends = 0;
    return false;
  }
  if (++known.batch.early_ends >= kMostEarlyEnds)
    ForgetBatch(known, turns.equal ? absl::StrCat("it is left after ", turns.least, " of them")
                                   : "its runs do not all come as far");
  return true;
}

std::vector<RunSpec> BatchRuns(const LoopKnowledge& known) {
  std::vector<RunSpec> runs = PlacementRuns(known);
  runs.push_back({.variant = kCountIndex, .restore = known.probe.trace.in_situ});
  return runs;
}

StepOutcome LearnBatch(LoopKnowledge& known, const ShadowAnswer& answer,
                       const std::vector<RunSpec>& runs) {
  LearnTurns(known, answer, runs);
  std::map<int32_t, double> instances = InstancesOf(answer, runs);
  // Of each thread the best: a machine that does other things makes runs longer, none shorter.
  std::map<int32_t, double> best;
  for (const ShadowRun& run : answer.runs) {
    if (!run.ok) {
      ForgetBatch(known, absl::StrCat("REF failed: ", run.failure));
      return Learned();
    }
    const RunSpec& spec = runs[static_cast<size_t>(run.run)];
    if (spec.variant != kRefIndex || (known.protocol.new_placements && spec.place == 0)) continue;
    const double cycles = static_cast<double>(run.cycles) / instances[run.thread];
    double& least = best.try_emplace(run.thread, cycles).first->second;
    least = std::min(least, cycles);
  }
  for (const auto& [thread, cycles] : best) known.runs.cycles = std::max(known.runs.cycles, cycles);
  if (known.protocol.new_placements) LearnPlacements(known, answer, runs);
  CheckBatch(known);
  return Learned();
}

}  // namespace perfd::agent
