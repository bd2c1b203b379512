// agent/experiment/steps/loop_experiment.h - one loop on one rank, from its first entry count to its last shadow.
//
// Shape    Step() while stage() is not kDone: entry count, live timing, a probe (COUNT and a capped TRACE), then shadows of the
//          stage that core/analysis asks for, until every interval is tight or enough runs are valid. Measurement() at any time.
//          What is known is a LoopKnowledge; which step comes next is decided in loop/phase.h, nowhere else.
// Units    ns of wall time; cycles of the TSC.
// Errors   a loop that cannot be measured ends in kDone with MeasureState::kRefused or kNeverEntered and the reason.
// Threads  thread-compatible; Step sleeps while the shadow runs.
// Source   design section 6, steps 5 to 8; hazards of measuring.
#ifndef AGENT_EXPERIMENT_STEPS_LOOP_EXPERIMENT_H_
#define AGENT_EXPERIMENT_STEPS_LOOP_EXPERIMENT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "agent/experiment/loop/phase.h"
#include "agent/experiment/loop/price.h"

namespace perfd::agent {

class LoopExperiment {
 public:
  LoopExperiment(LoopSetup setup, InstalledLoop installed);

  Stage stage() const { return StageOf(position_.phase); }
  // Recovery mode: its steps pause nobody, they slow the rank down for a while.
  bool InSitu() const { return position_.phase == Phase::kInSitu; }
  // Least wall time that the next step adds; 0: none.
  int64_t LeastCost(const ShadowPrediction& prediction) const;
  // Of a step that measures all that is missing, as far as one shadow can: several that measure less cost more.
  int64_t RoundCost(const ShadowPrediction& prediction) const;
  // Of one run; what is known of it so far.
  int64_t RoundNs() const { return perfd::agent::RoundNs(known_); }
  StepCost Step(RankInjector& injector, const StepRoom& room);
  // The caller asks no more: what is missing stays open for this reason.
  void Close(const std::string& reason);
  // It is hot again: what ended because nobody came into the loop, or because time was up, goes on.
  void Reopen();
  // From now on measurements have the assembly: one rank shows it for all.
  void ShowListings() { with_listings_ = true; }
  bool Lists() const { return with_listings_ && HasFigures(); }
  bool HasFigures() const;
  bool IsRefused() const { return position_.state == MeasureState::kRefused; }
  LoopMeasurement Measurement(uint64_t revision) const;
  // Of a dry run: whether short instances would be run in the rank itself, and why not.
  void PredictMode(LoopMeasurement& out) const;
  const EntryCount& entry_count() const { return known_.live.entries; }
  int32_t shadow_team() const { return ShadowTeam(known_); }
  // What shadows need of the rank's memory. None: not known yet, or it did not suffice.
  std::optional<Footprint> footprint() const;
  // Why memory cannot be left out of shadows.
  void RecordTrim(const absl::Status& status) {
    known_.trim.record = std::string(status.message());
  }
  std::string TrimRecord() const;

 private:
  StepOutcome Advance(RankInjector& injector, const StepRoom& room, StepCost* cost);
  StepOutcome AdvanceByShadow(RankInjector& injector, const StepRoom& room, StepCost* cost);
  std::optional<StepOutcome> ForkIsTooLong(const StepRoom& room) const;

  LoopKnowledge known_;
  Position position_;
  bool with_listings_ = false;
};

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_STEPS_LOOP_EXPERIMENT_H_
