// agent/experiment/loop/phase.h - which step a loop's experiment makes next: the only place that decides it.
//
// Shape    PhaseOf is a function of what is known; Next adds what came of the last step: failures, ends and their reasons.
// Threads  thread-safe (pure).
// Source   design section 6, steps 5 to 8.
#ifndef AGENT_EXPERIMENT_LOOP_PHASE_H_
#define AGENT_EXPERIMENT_LOOP_PHASE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "agent/experiment/loop/knowledge.h"

namespace perfd::agent {

enum class Phase : uint8_t {
  kEntryCount,  // who enters it, and how often
  kLive,        // how long instances take in the rank
  kProbe,       // COUNT and a capped TRACE in a first shadow
  kBatch,       // how long an instance takes in a batch
  kSuccession,  // instances of a batch repeated, or each run on others
  kPlacement,   // copies at one place, or at others each time
  kEviction,    // caches as the run before left them, or emptied
  kNatural,     // caches as the program itself leaves them
  kMeasure,     // variants, in shadows
  kInSitu,      // variants, in the rank itself
  kDone,
};

// The same as schedules see it: whoever is less far goes first.
enum class Stage : uint8_t { kEntryCount, kLive, kProbe, kMeasure, kDone };
Stage StageOf(Phase phase);

// What came of one step.
struct StepOutcome {
  enum class Kind : uint8_t {
    kNothing,  // it was not made
    kLearned,  // something ran, and what is known may have changed
    kFailed,   // with `failure`
    kEnded,    // the loop cannot be measured any further: `state`, `reason`
  };
  Kind kind = Kind::kNothing;
  absl::Status failure = absl::OkStatus();
  MeasureState state = MeasureState::kOpen;
  std::string reason = {};
};
inline StepOutcome Learned() {
  return {.kind = StepOutcome::Kind::kLearned};
}
inline StepOutcome Failed(absl::Status failure) {
  return {.kind = StepOutcome::Kind::kFailed, .failure = std::move(failure)};
}
inline StepOutcome Ended(MeasureState state, std::string reason) {
  return {.kind = StepOutcome::Kind::kEnded, .state = state, .reason = std::move(reason)};
}
// What a batch cannot have is no fault of the loop: then it goes on alone, and that was forgotten which batches had told.
StepOutcome RefusedHere(LoopKnowledge& known, const std::string& why);

struct Position {
  Phase phase = Phase::kEntryCount;
  MeasureState state = MeasureState::kOpen;
  std::string reason = {};  // of an end
  int32_t failures = 0;     // one after another, of this phase
};

// What has to be learnt next. kDone: nothing, or nothing more for the shadows that a loop may have.
Phase PhaseOf(const LoopKnowledge& known);
// Failures that pass are tried again kMostFailures times. What cannot be had any more may have been further instances only: then
// the loop is measured.
inline constexpr int32_t kMostFailures = 4;
Position Next(const LoopKnowledge& known, const Position& now, const StepOutcome& outcome);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_LOOP_PHASE_H_
