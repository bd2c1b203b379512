#include "agent/experiment/steps/in_situ_step.h"

#include <algorithm>
#include <map>
#include <utility>

#include "agent/experiment/loop/figures.h"
#include "agent/experiment/loop/in_situ.h"
#include "agent/shadow/recovery_plan.h"
#include "core/analysis/cluster_median.h"

namespace perfd::agent {
namespace {

constexpr int32_t kRoundsPerRepetition = 4;  // single runs of short instances scatter a lot

// By cluster; the first run of REF comes right after the loop alone.
struct Neighbours {
  std::map<uint32_t, uint64_t> alone, ref;
};

void RecordRun(LoopKnowledge& known, const RecoveryRun& run, int32_t copy, Neighbours& neighbours) {
  if (copy == kNoCopy) {
    known.shadows.probes.push_back(run.cycles);
    if (run.original > 0) neighbours.alone[run.cluster] = run.original;
    return;
  }
  if (copy == kRefIndex) neighbours.ref.emplace(run.cluster, run.cycles);
  if (copy == kCountIndex) known.trips.counts.push_back(run.iterations);
  RunSample sample;
  sample.shadow = known.in_situ.clusters + run.cluster;
  sample.order = static_cast<uint32_t>(run.step);
  sample.thread = run.thread;
  sample.variant = known.installed.names[static_cast<size_t>(copy)].Text();
  sample.cycles = static_cast<double>(run.cycles);
  sample.iterations = copy == kCountIndex ? run.iterations : 0;
  known.runs.samples.push_back(std::move(sample));
}

void RecordInSitu(LoopKnowledge& known, const RecoveryAnswer& answer,
                  const std::vector<int32_t>& round) {
  uint32_t next = known.in_situ.clusters;
  Neighbours neighbours;
  for (const RecoveryRun& run : answer.runs) {
    const auto step = static_cast<size_t>(run.step);
    if (step >= round.size()) continue;
    next = std::max(next, known.in_situ.clusters + run.cluster + 1);
    RecordRun(known, run, round[step], neighbours);
  }
  known.in_situ.clusters = next;
  known.shadows.probe_cycles = static_cast<double>(Median(known.shadows.probes));
  // The same instance is never timed twice: those of one length are compared.
  for (const auto& [cluster, own] : neighbours.alone) {
    const auto found = neighbours.ref.find(cluster);
    if (found == neighbours.ref.end()) continue;
    const double copy = static_cast<double>(found->second) - known.shadows.probe_cycles;
    if (copy > 0) known.in_situ.likeness.push_back(copy / static_cast<double>(own));
  }
}

// In units of REF's own time, so that fidelity is what was found for instances of equal length.
void CompareWithLive(LoopKnowledge& known) {
  if (known.in_situ.likeness.empty() || known.runs.cycles <= 0) return;
  known.live.times.instances.clear();
  known.live.times.clusters.clear();
  known.live.times.timed = known.in_situ.likeness.size();
  for (const double likeness : known.in_situ.likeness)
    known.live.times.instances.push_back(static_cast<uint64_t>(known.runs.cycles / likeness));
  known.live.times.cycles = static_cast<double>(Median(known.live.times.instances));
}

RecoveryRequest RequestOf(const LoopKnowledge& known, const StepRoom& room) {
  RecoveryRequest request;
  request.loop = known.setup.loop_to_inject;
  request.round = InSituRound(known);
  request.timeout_ns = room.timeout_ns;
  const int64_t bought = room.credit_ns / InSituNs(known);
  const int64_t rounds = int64_t{kRoundsPerRepetition} * std::max(1, known.setup.repetitions);
  const int64_t wanted = rounds * static_cast<int64_t>(request.round.size()) * TeamOf(known);
  request.runs = static_cast<int32_t>(
      std::clamp<int64_t>(std::min(wanted, bought), 1, int64_t{kMostRecoveries}));
  request.most_added_ns = request.runs * InSituNs(known);
  return request;
}

void Charge(LoopKnowledge& known, const RecoveryAnswer& answer) {
  InjectionCost& cost = known.shadows.cost;
  ++known.shadows.count;
  cost.recoveries += answer.runs.size();
  cost.recovery_ns += answer.added_ns;
  if (answer.runs.empty()) return;
  const double each =
      static_cast<double>(answer.added_ns) / static_cast<double>(answer.runs.size());
  known.in_situ.besides_ns = std::max(1.0, each * TeamOf(known) - InstanceNs(known));
}

}  // namespace

StepOutcome RunInSitu(LoopKnowledge& known, RankInjector& injector, const StepRoom& room,
                      StepCost* cost) {
  const RecoveryRequest request = RequestOf(known, room);
  const absl::StatusOr<RecoveryAnswer> answer = injector.Recover(request);
  if (!answer.ok()) return Failed(answer.status());
  Charge(known, *answer);
  RecordInSitu(known, *answer, request.round);
  Reduce(known);
  CompareWithLive(known);
  *cost = {.later_ns = answer->added_ns, .predicted_ns = request.most_added_ns};
  return Learned();
}

}  // namespace perfd::agent
