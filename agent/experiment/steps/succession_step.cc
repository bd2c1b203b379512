#include "agent/experiment/steps/succession_step.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "agent/experiment/loop/protocol.h"
#include "agent/experiment/plan/group_means.h"
#include "agent/experiment/plan/run_schedule.h"
#include "core/analysis/cluster_median.h"

namespace perfd::agent {
namespace {

constexpr double kWorthGoingOn = 0.05;  // nearer than repeating, or it is not worth what it needs
constexpr int32_t kMostCutShort = 2;

// Of each thread what a quarter of its runs are below: a machine that does other things makes runs longer, none shorter. Of these the one
// in the middle, as live instances are timed. 0: none counts.
double UsualCycles(const ShadowAnswer& answer, const std::vector<RunSpec>& runs, bool successive,
                   int skip) {
  std::map<int32_t, std::vector<double>> threads;
  for (const ShadowRun& run : answer.runs) {
    const auto index = static_cast<size_t>(run.run);
    if (!run.ok || index >= runs.size() || run.run < skip || runs[index].instances == 1) continue;
    if (runs[index].variant == kRefIndex && runs[index].successive == successive)
      threads[run.thread].push_back(static_cast<double>(run.cycles) /
                                    static_cast<double>(run.instances));
  }
  std::vector<double> of_threads;
  for (auto& [thread, cycles] : threads) {
    std::sort(cycles.begin(), cycles.end());
    of_threads.push_back(cycles[cycles.size() / 4]);
  }
  if (of_threads.empty()) return 0;
  std::sort(of_threads.begin(), of_threads.end());
  return of_threads[of_threads.size() / 2];
}

// Of successive instances, each timed alone: the same estimate as that of live ones. 0: none.
double AloneCycles(const ShadowAnswer& answer, const std::vector<RunSpec>& runs) {
  std::map<int32_t, std::vector<uint64_t>> threads;
  for (const ShadowRun& run : answer.runs) {
    const auto index = static_cast<size_t>(run.run);
    if (!run.ok || index >= runs.size() || runs[index].instances != 1) continue;
    threads[run.thread].push_back(run.cycles - std::min(run.cycles, answer.probe_cycles));
  }
  std::vector<uint64_t> means;
  for (const auto& [thread, cycles] : threads) {
    const std::vector<uint64_t> of_thread = GroupMeans(cycles);
    means.insert(means.end(), of_thread.begin(), of_thread.end());
  }
  return static_cast<double>(Median(means));
}

// What is left of an instance's time where it overlaps with its neighbours: live ones that are timed alone have less then as well.
void LearnOverlap(LoopKnowledge& known, double in_a_batch, double alone) {
  if (known.live.alone || alone <= 0 || in_a_batch >= alone) return;
  SetFactor(known.live, in_a_batch / alone);
}

double Distance(double cycles, double live) {
  return std::abs(std::log(cycles / live));
}

}  // namespace

void LearnSuccession(LoopKnowledge& known, const ShadowAnswer& answer,
                     const std::vector<RunSpec>& runs) {
  known.protocol.succession_compared = true;
  const int first = static_cast<int>(LookingAhead().size());
  const double repeated = UsualCycles(answer, runs, false, first + kWarmUps);
  const double going_on =
      UsualCycles(answer, runs, true, first + kRepeatedRuns + kSuccessiveWarmUps);
  if (repeated <= 0 || going_on <= 0) return;
  LearnOverlap(known, going_on, AloneCycles(answer, runs));
  const double live = known.live.times.cycles;
  const double cycles = known.runs.cycles * going_on / repeated;
  if (Distance(cycles, live) > Distance(known.runs.cycles, live) - kWorthGoingOn) return;
  known.protocol.successive = true;
  known.protocol.new_placements = false;
  known.protocol.evict_chosen = true;
  known.runs.cycles = cycles;
  ForgetRuns(known);
  ForgetPasses(known);
}

void CheckSuccession(LoopKnowledge& known, const ShadowAnswer& answer,
                     const std::vector<RunSpec>& runs) {
  if (!known.protocol.successive && !known.protocol.natural) return;
  const bool counts = std::any_of(answer.runs.begin(), answer.runs.end(), [&](const ShadowRun& r) {
    const auto index = static_cast<size_t>(r.run);
    return r.ok && index < runs.size() && (runs[index].successive || runs[index].natural) &&
           runs[index].variant != kTraceIndex;
  });
  if (counts) {
    known.protocol.cut_short = 0;
    return;
  }
  if (++known.protocol.cut_short < kMostCutShort) return;
  known.protocol.successive = false;
  known.protocol.natural = false;
  known.protocol.evict_chosen = false;
  ForgetRuns(known);
  ForgetPasses(known);
}

}  // namespace perfd::agent
