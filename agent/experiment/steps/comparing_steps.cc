#include "agent/experiment/steps/comparing_steps.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "agent/experiment/loop/protocol.h"

namespace perfd::agent {
namespace {

constexpr double kWorthEvicting =
    0.05;  // nearer than what evicts less, or it is not worth its time
constexpr double kWorthArriving = 0.05;  // nearer than repeating, or it is not worth the way

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

// Of the thread in the middle, as live instances are timed; 0: a thread has no result.
double MiddleCycles(const ShadowAnswer& answer, size_t run) {
  std::vector<double> cycles;
  for (const ShadowRun& result : answer.runs) {
    if (static_cast<size_t>(result.run) != run) continue;
    if (!result.ok) return 0;
    cycles.push_back(static_cast<double>(result.cycles));
  }
  if (cycles.empty()) return 0;
  std::sort(cycles.begin(), cycles.end());
  return cycles[cycles.size() / 2];
}

}  // namespace

StepOutcome LearnPlacements(LoopKnowledge& known, const ShadowAnswer& answer,
                            const std::vector<RunSpec>& runs) {
  known.protocol.placements_compared = true;
  const double one = BestCycles(answer, runs, false), others = BestCycles(answer, runs, true);
  const double live = known.live.times.cycles;
  if (one <= 0 || others <= 0 || live <= 0) return Learned();
  const double factor = one / others;
  const double gap = std::log(known.runs.cycles / live);
  if (gap <= kTooSlow || std::abs(std::log(known.runs.cycles * factor / live)) >= gap)
    return Learned();
  known.protocol.new_placements = false;
  known.runs.cycles *= factor;
  ForgetRuns(known);
  return Learned();
}

StepOutcome LearnEviction(LoopKnowledge& known, const ShadowAnswer& answer,
                          const std::vector<RunSpec>& runs) {
  known.protocol.evict_chosen = true;
  double warm = 0, nearest = 0, factor = 1;
  Evict best = Evict::kNothing;
  for (size_t run = 0; run < runs.size(); ++run) {
    const bool last = run + 1 == runs.size() || runs[run + 1].evict != runs[run].evict;
    const double cycles = last ? MiddleCycles(answer, run) : 0;
    if (cycles <= 0) continue;
    if (runs[run].evict == Evict::kNothing) warm = cycles;
    if (warm <= 0) return Learned();
    const double gap =
        std::abs(std::log(known.runs.cycles * cycles / warm / known.live.times.cycles));
    if (runs[run].evict != Evict::kNothing && gap > nearest - kWorthEvicting) continue;
    nearest = gap;
    factor = cycles / warm;
    best = runs[run].evict;
  }
  if (best == Evict::kNothing) return Learned();
  known.protocol.evict = best;
  known.runs.cycles *= factor;
  ForgetRuns(known);
  return Learned();
}

StepOutcome LearnNatural(LoopKnowledge& known, const ShadowAnswer& answer,
                         const std::vector<RunSpec>& runs) {
  constexpr size_t kLeastArrivals = 3;
  known.protocol.natural_compared = true;
  std::vector<double> arrivals;
  for (size_t run = kNaturalWarmUps; run < runs.size(); ++run) {
    const double cycles = MiddleCycles(answer, run) - known.shadows.probe_cycles;
    if (cycles > 0) arrivals.push_back(cycles);
  }
  if (arrivals.size() < kLeastArrivals) return Learned();
  std::sort(arrivals.begin(), arrivals.end());
  const double cycles = arrivals[arrivals.size() / 2], live = known.live.times.cycles;
  const double gap = std::abs(std::log(cycles / live));
  if (gap > std::abs(std::log(known.runs.cycles / live)) - kWorthArriving) return Learned();
  known.protocol.natural = true;
  known.protocol.evict_chosen = true;
  known.protocol.evict = Evict::kNothing;
  known.protocol.new_placements = false;
  known.runs.cycles = cycles;
  ForgetRuns(known);
  ForgetPasses(known);
  return Learned();
}

}  // namespace perfd::agent
