#include "agent/experiment/loop/phase.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/experiment/loop/protocol.h"

namespace perfd::agent {
namespace {

constexpr uint32_t kMostShadows = 64;     // of one loop: what is not known by then will not be
constexpr size_t kMostSamples = 100'000;  // of runs in the rank itself

bool EnoughInSitu(const LoopKnowledge& known) {
  return known.shadows.count > 0 &&
         (known.runs.missing.empty() || known.shadows.count >= kMostShadows ||
          known.runs.samples.size() >= kMostSamples);
}

bool IsMeasuring(Phase phase) {
  return StageOf(phase) == Stage::kMeasure;
}

Position End(const LoopKnowledge& known, const Position& now, MeasureState state,
             std::string reason) {
  const bool measured =
      IsMeasuring(now.phase) && !known.runs.samples.empty() && known.runs.missing.empty();
  if (measured) return {.phase = Phase::kDone, .state = MeasureState::kMeasured};
  return {.phase = Phase::kDone, .state = state, .reason = std::move(reason)};
}

// Unavailable: the next attempt may succeed. Cancelled: whoever did so says why. Anything else will not change.
Position AfterFailure(const LoopKnowledge& known, const Position& now, const absl::Status& status) {
  if (absl::IsCancelled(status)) return now;
  const bool passing = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  Position next = now;
  if (passing && ++next.failures < kMostFailures) return next;
  const char* gone = "the process has ended, or it runs another program now (exec): ";
  return End(known, now, passing ? MeasureState::kOpen : MeasureState::kRefused,
             absl::StrCat(absl::IsNotFound(status) ? gone : "", status.message()));
}

}  // namespace

Stage StageOf(Phase phase) {
  switch (phase) {
    case Phase::kEntryCount:
      return Stage::kEntryCount;
    case Phase::kLive:
      return Stage::kLive;
    case Phase::kProbe:
      return Stage::kProbe;
    case Phase::kBatch:
    case Phase::kSuccession:
    case Phase::kPlacement:
    case Phase::kEviction:
    case Phase::kNatural:
    case Phase::kMeasure:
    case Phase::kInSitu:
      return Stage::kMeasure;
    case Phase::kDone:
      return Stage::kDone;
  }
  return Stage::kDone;
}

StepOutcome RefusedHere(LoopKnowledge& known, const std::string& why) {
  if (known.batch.instances == 0) return Ended(MeasureState::kRefused, why);
  ForgetBatch(known, why);
  return Learned();
}

Phase PhaseOf(const LoopKnowledge& known) {
  if (known.live.entries.team == 0) return Phase::kEntryCount;
  if (known.live.times.cycles == 0) return Phase::kLive;
  if (known.in_situ.on) return EnoughInSitu(known) ? Phase::kDone : Phase::kInSitu;
  if (!IsProbed(known)) return Phase::kProbe;
  if (known.shadows.count >= kMostShadows) return Phase::kDone;
  if (known.batch.instances > 0 && known.runs.cycles <= 0) return Phase::kBatch;
  if (NeedsSuccession(known)) return Phase::kSuccession;
  if (NeedsPlacements(known)) return Phase::kPlacement;
  if (NeedsEviction(known)) return Phase::kEviction;
  if (NeedsNatural(known)) return Phase::kNatural;
  const bool all = known.runs.missing.empty() && known.runs.missing_instances.empty();
  return all ? Phase::kDone : Phase::kMeasure;
}

Position Next(const LoopKnowledge& known, const Position& now, const StepOutcome& outcome) {
  switch (outcome.kind) {
    case StepOutcome::Kind::kNothing:
      return now;
    case StepOutcome::Kind::kLearned: {
      const Phase phase = PhaseOf(known);
      const bool done = phase == Phase::kDone;
      return {.phase = phase, .state = done ? MeasureState::kMeasured : MeasureState::kOpen};
    }
    case StepOutcome::Kind::kFailed:
      return AfterFailure(known, now, outcome.failure);
    case StepOutcome::Kind::kEnded:
      return End(known, now, outcome.state, outcome.reason);
  }
  return now;
}

}  // namespace perfd::agent
