#include "agent/experiment/steps/shadow.h"

#include <algorithm>
#include <utility>

#include "agent/experiment/loop/price.h"
#include "agent/experiment/loop/protocol.h"
#include "agent/experiment/loop/trim.h"
#include "core/analysis/cluster_median.h"

namespace perfd::agent {
namespace {

ShadowRequest RequestOf(const LoopKnowledge& known, const StepRoom& room, std::vector<RunSpec> runs,
                        bool restore) {
  ShadowRequest request;
  request.loop = known.setup.loop_to_inject;
  request.team = ShadowTeam(known);
  // By number of entries, not by time: entries after long gaps must not be chosen more often.
  const uint64_t draw = room.generation > 0 ? room.generation : known.shadows.count;
  const auto most = static_cast<uint64_t>(std::max<int64_t>(1, room.most_countdown));
  request.countdown = static_cast<int64_t>((draw * 7919 + 13) % most) * TeamOf(known);
  request.arm_from_ns = room.arm_from_ns;
  request.arm_until_ns = room.arm_until_ns;
  request.shadow_ns = known.setup.shadow_ns;
  request.timeout_ns = room.timeout_ns;
  request.written.most_bytes = MostWritten(known);
  request.runs = std::move(runs);
  for (RunSpec& run : request.runs) {
    if (run.instances == 0) run.instances = known.batch.instances;
    if (run.form == CopyForm::kUsual) run.form = FormOf(known, run.variant);
    if (run.natural) run.warm_ns = NaturalWarmNs(known);
  }
  request.written.read_once = ReadOnce(known, request.runs);
  if (!restore) request.written.ranges = known.probe.trace.written;
  if (restore) {
    request.restores = known.probe.trace.written;
    request.writers = known.probe.trace.writers;
  }
  if (room.trim)
    request.footprint = FootprintOf(known, IsProbed(known) ? Phase::kMeasure : Phase::kProbe);
  return request;
}

constexpr int32_t kMostMissedGatherings = 2;

// Threads that were never seen to meet need not: each is measured in its own time, and no other one waits for it.
StepOutcome AfterMissedGathering(LoopKnowledge& known, const absl::Status& status) {
  if (MayBeLone(known) && ++known.live.missed_gatherings >= kMostMissedGatherings) {
    known.live.lone = true;
    return Learned();
  }
  return Failed(absl::UnavailableError(status.message()));
}

// Aborted is what injectors say when they could not leave memory out, OutOfRange when a team did not meet.
StepOutcome AfterFailure(LoopKnowledge& known, const absl::Status& status) {
  if (absl::IsCancelled(status)) return {};  // nothing was armed: the next window will do
  const bool missed = absl::IsOutOfRange(status);
  const bool passing = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || missed;
  if (passing) ++known.shadows.cost.failed_arms;
  if (missed) return AfterMissedGathering(known, status);
  if (absl::IsAborted(status)) {
    LearnTrimFailure(known, status);
    return {};
  }
  if (passing || known.batch.instances == 0) return Failed(status);
  return RefusedHere(known, std::string(status.message()));
}

void Charge(LoopKnowledge& known, const ShadowAnswer& answer, int64_t later_ns) {
  ShadowTotals& totals = known.shadows;
  ++totals.count;
  // A shadow that is ended has only its first, cold one.
  if (answer.probe_cycles > 0) totals.probes.push_back(answer.probe_cycles);
  totals.probe_cycles = static_cast<double>(Median(totals.probes));
  InjectionCost& cost = totals.cost;
  cost.failed_arms += static_cast<uint64_t>(answer.failed_gathers);
  cost.later_fault_ns += later_ns;
  ++cost.shadows;
  cost.pause_ns += answer.pause_ns;
  cost.longest_pause_ns = std::max(cost.longest_pause_ns, answer.pause_ns);
}

}  // namespace

ShadowOutcome RunShadow(LoopKnowledge& known, RankInjector& injector, const StepRoom& room,
                        std::vector<RunSpec> runs, int64_t runs_ns, bool restore) {
  const int64_t predicted = FixedCost(known, room.prediction) + runs_ns;
  auto answer = injector.RunShadow(RequestOf(known, room, std::move(runs), restore));
  if (!answer.ok())
    return {.answer = std::nullopt, .outcome = AfterFailure(known, answer.status()), .cost = {}};
  if (answer->pause_ns <= 0) {
    // Nothing was learned, and nothing says that the next one would tell more.
    return {.answer = std::nullopt,
            .outcome =
                Failed(absl::UnavailableError("a shadow came back without having held its team")),
            .cost = {}};
  }
  const uint64_t most = std::max<uint64_t>(1, known.batch.instances);
  for (ShadowRun& run : answer->runs) run.instances = std::clamp<uint64_t>(run.instances, 1, most);
  const int64_t later_ns = std::max(room.prediction.later_fault_ns, answer->later_fault_ns);
  Charge(known, *answer, later_ns);
  const StepCost cost = {.pause_begin_ns = answer->pause_begin_ns,
                         .pause_ns = answer->pause_ns,
                         .later_ns = later_ns,
                         .predicted_ns = predicted};
  return {.answer = *std::move(answer), .outcome = Learned(), .cost = cost};
}

}  // namespace perfd::agent
