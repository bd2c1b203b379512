#include "agent/experiment/steps/loop_experiment.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/experiment/loop/figures.h"
#include "agent/experiment/loop/in_situ.h"
#include "agent/experiment/loop/price.h"
#include "agent/experiment/loop/protocol.h"
#include "agent/experiment/loop/trim.h"
#include "agent/experiment/steps/batch_step.h"
#include "agent/experiment/steps/comparing_steps.h"
#include "agent/experiment/steps/in_situ_step.h"
#include "agent/experiment/steps/live_steps.h"
#include "agent/experiment/steps/measure_step.h"
#include "agent/experiment/steps/probe_step.h"
#include "agent/experiment/steps/shadow.h"
#include "agent/experiment/steps/succession_step.h"

namespace perfd::agent {
namespace {

// Where memory can be left out it is worth it (RankExperiments asks): what is saved buys further shadows.
// The code around a loop may touch anything.
StepRoom Trimmed(const StepRoom& room, bool goes_on) {
  StepRoom used = room;
  if (!room.trimmed || goes_on) return used;
  used.prediction = *room.trimmed;
  used.trim = true;
  return used;
}

// What a step asks of its shadow.
struct ShadowStep {
  MeasureRuns scheduled;
  int64_t runs_ns = 0;
  bool restore = false;
};

ShadowStep StepOf(const LoopKnowledge& known, Phase phase, const StepRoom& room) {
  ShadowStep step;
  step.restore = known.probe.trace.in_situ;
  switch (phase) {
    case Phase::kProbe:
      step.scheduled.runs = ProbeRuns(known);
      step.restore = false;
      break;
    case Phase::kBatch:
      step.scheduled.runs = BatchRuns(known);
      break;
    case Phase::kSuccession:
      step.scheduled.runs = SuccessionRuns(known);
      break;
    case Phase::kPlacement:
      step.scheduled.runs = PlacementRuns(known);
      break;
    case Phase::kEviction:
      step.scheduled.runs = EvictionRuns(known);
      Place(known, step.scheduled.runs);
      break;
    case Phase::kNatural:
      step.scheduled.runs = NaturalRuns(known);
      break;
    default:
      step.scheduled = ScheduleMissing(known, room);
      break;
  }
  const std::vector<RunSpec>& runs = step.scheduled.runs;
  const bool comparing = phase == Phase::kSuccession || phase == Phase::kPlacement ||
                         phase == Phase::kEviction || phase == Phase::kNatural;
  step.runs_ns =
      comparing ? ComparingNs(known, runs) : static_cast<int64_t>(runs.size()) * RunNs(known);
  return step;
}

StepOutcome Learn(LoopKnowledge& known, Phase phase, const ShadowAnswer& answer,
                  const MeasureRuns& scheduled) {
  switch (phase) {
    case Phase::kBatch:
      return LearnBatch(known, answer, scheduled.runs);
    case Phase::kSuccession:
      LearnSuccession(known, answer, scheduled.runs);
      return Learned();
    case Phase::kPlacement:
      return LearnPlacements(known, answer, scheduled.runs);
    case Phase::kEviction:
      return LearnEviction(known, answer, scheduled.runs);
    case Phase::kNatural:
      return LearnNatural(known, answer, scheduled.runs);
    default:
      return LearnRuns(known, answer, scheduled);
  }
}

}  // namespace

LoopExperiment::LoopExperiment(LoopSetup setup, InstalledLoop installed) {
  known_.setup = std::move(setup);
  known_.installed = std::move(installed);
  const absl::Status& status = known_.installed.status;
  if (status.ok()) return;
  const MeasureState state =
      absl::IsCancelled(status) ? MeasureState::kOpen : MeasureState::kRefused;
  position_ = Next(known_, position_, Ended(state, std::string(status.message())));
}

int64_t LoopExperiment::LeastCost(const ShadowPrediction& prediction) const {
  return perfd::agent::LeastCost(known_, position_.phase, prediction);
}

int64_t LoopExperiment::RoundCost(const ShadowPrediction& prediction) const {
  return perfd::agent::RoundCost(known_, position_.phase, prediction);
}

StepCost LoopExperiment::Step(RankInjector& injector, const StepRoom& room) {
  StepCost cost;
  const StepOutcome outcome = Advance(injector, room, &cost);
  if (outcome.kind == StepOutcome::Kind::kLearned && known_.live.times.cycles > 0)
    UpdateMissing(known_);
  position_ = Next(known_, position_, outcome);
  return cost;
}

StepOutcome LoopExperiment::Advance(RankInjector& injector, const StepRoom& room, StepCost* cost) {
  switch (position_.phase) {
    case Phase::kEntryCount:
      return CountEntries(known_, injector, room);
    case Phase::kLive:
      return TimeLive(known_, injector, room);
    case Phase::kInSitu:
      return RunInSitu(known_, injector, room, cost);
    case Phase::kDone:
      return {};
    case Phase::kProbe:
    case Phase::kBatch:
    case Phase::kSuccession:
    case Phase::kPlacement:
    case Phase::kEviction:
    case Phase::kNatural:
    case Phase::kMeasure:
      return AdvanceByShadow(
          injector, Trimmed(room, position_.phase == Phase::kNatural || known_.protocol.natural),
          cost);
  }
  return {};
}

StepOutcome LoopExperiment::AdvanceByShadow(RankInjector& injector, const StepRoom& room,
                                            StepCost* cost) {
  if (auto too_long = ForkIsTooLong(room)) return *too_long;
  const Phase phase = position_.phase;
  const ShadowStep step = StepOf(known_, phase, room);
  const std::vector<RunSpec>& runs = step.scheduled.runs;
  ShadowOutcome shadow = RunShadow(known_, injector, room, runs, step.runs_ns, step.restore);
  *cost = shadow.cost;
  if (!shadow.answer) return shadow.outcome;
  if (room.trim && LearnMissedMemory(known_, *shadow.answer)) return Learned();
  if (phase != Phase::kProbe) {
    if (LearnEarlyEnd(known_, *shadow.answer, runs)) return Learned();
    return Learn(known_, phase, *shadow.answer, step.scheduled);
  }
  StepOutcome outcome = LearnProbe(known_, *shadow.answer, runs);
  // What it writes is known only now; a prediction without those copies must not make all later ones look too low.
  if (IsProbed(known_))
    cost->predicted_ns = FixedCost(known_, room.prediction) +
                         static_cast<int64_t>(runs.size()) * perfd::agent::RunNs(known_);
  return outcome;
}

std::optional<StepOutcome> LoopExperiment::ForkIsTooLong(const StepRoom& room) const {
  if (known_.setup.shadow_ns <= 0 || room.prediction.fork_ns <= LongestShadowNs(known_))
    return std::nullopt;
  const double fork_ms = static_cast<double>(room.prediction.fork_ns) / 1e6;
  std::string reason =
      absl::StrFormat("a fork of this rank takes %.0f ms; that needs budget.shadow of %.0f ms",
                      fork_ms, fork_ms / kShadowShare);
  if (const std::string note = TrimRecord(); !note.empty())
    absl::StrAppend(&reason, " (", note, ")");
  const bool probed = position_.phase != Phase::kProbe;
  return Ended(probed ? MeasureState::kOpen : MeasureState::kRefused, std::move(reason));
}

void LoopExperiment::Close(const std::string& reason) {
  if (absl::IsCancelled(known_.installed.status)) position_.reason = reason;
  if (position_.phase == Phase::kDone) return;
  // An entry count that found nobody is followed by a longer one; before the first nobody has looked.
  const bool watched = known_.live.next_count_ns > kFirstEntryCountNs;
  const bool never = known_.live.entries.team == 0 && watched;
  const StepOutcome end =
      never ? Ended(MeasureState::kNeverEntered, "no thread entered the loop while it was watched")
            : Ended(MeasureState::kOpen, reason);
  position_ = Next(known_, position_, end);
}

void LoopExperiment::Reopen() {
  const bool settled =
      position_.state == MeasureState::kMeasured || position_.state == MeasureState::kRefused;
  if (position_.phase != Phase::kDone || settled || !known_.installed.status.ok()) return;
  if (known_.live.entries.team == 0) known_.live.next_count_ns = kFirstEntryCountNs;
  position_ = Next(known_, {}, Learned());
}

bool LoopExperiment::HasFigures() const {
  return position_.state != MeasureState::kRefused && perfd::agent::HasFigures(known_);
}

LoopMeasurement LoopExperiment::Measurement(uint64_t revision) const {
  LoopMeasurement out = MeasurementOf(known_, position_, with_listings_);
  out.revision = revision;
  return out;
}

void LoopExperiment::PredictMode(LoopMeasurement& out) const {
  perfd::agent::PredictMode(known_, out);
}

std::optional<Footprint> LoopExperiment::footprint() const {
  return FootprintOf(known_, position_.phase);
}

std::string LoopExperiment::TrimRecord() const {
  return perfd::agent::TrimRecord(known_, position_.phase);
}

}  // namespace perfd::agent
