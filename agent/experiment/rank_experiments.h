// agent/experiment/rank_experiments.h - one rank with its injector and the experiments on its loops.
//
// Shape    Install once, Add for loops that become hot later; Prepare / Step / Settle for one loop at a time; GiveUp when a
//          loop is hot no more, TakeUp when it is again; Restore at the end. Loops keep their numbers. A loop that was refused for the
//          code that it shares with one around or inside it has its turn when that one is refused. After the Install of
//          a dry run only Measurement: the rank was read, nothing of it was touched.
// Threads  Step may run on another thread than the rest, one at a time; OriginalAddress is thread-safe.
#ifndef AGENT_EXPERIMENT_RANK_EXPERIMENTS_H_
#define AGENT_EXPERIMENT_RANK_EXPERIMENTS_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "agent/experiment/steps/loop_experiment.h"
#include "agent/pipeline/experimenter.h"
#include "agent/shadow/rank_injector.h"

namespace perfd::agent {

class RankExperiments {
 public:
  RankExperiments(const RankLoops& places, std::unique_ptr<RankInjector> injector)
      : rank_(places.rank), injector_(std::move(injector)) {}

  void Install(const RankLoops& places, const ExperimentRequest& request, double ticks_per_ns);

  // More loops, numbered after those there are, which go on. They get their jumps when they are prepared.
  void Add(const std::vector<LoopSite>& places, const ExperimentRequest& request,
           double ticks_per_ns);
  // Takes the jump out and keeps what is known; RemoveGivenUp tries again where threads were in the way.
  void GiveUp(size_t loop);
  void RemoveGivenUp();
  void TakeUp(size_t loop);
  bool given_up(size_t loop) const { return loops_[loop].given_up; }

  const RankInfo& rank() const { return rank_; }
  size_t loops() const { return loops_.size(); }
  Stage stage(size_t loop) const { return loops_[loop].experiment.stage(); }
  int steps(size_t loop) const { return loops_[loop].steps; }
  // Of the next step, and of one that measures all that is missing.
  int64_t LeastCost(size_t loop) { return Cost(loop, &LoopExperiment::LeastCost); }
  int64_t RoundCost(size_t loop) { return Cost(loop, &LoopExperiment::RoundCost); }
  void Close(size_t loop, const std::string& reason);
  const LoopExperiment& experiment(size_t loop) const { return loops_[loop].experiment; }
  void ShowListings(size_t loop) { loops_[loop].experiment.ShowListings(); }

  // From one entry of a thread to its next, on average.
  int64_t EntryNs(size_t loop) const;
  // Puts the jump in where it is not; what the step may use.
  StepRoom Prepare(size_t loop, int64_t credit_ns, int64_t left_ns = INT64_MAX);
  StepCost Step(size_t loop, const StepRoom& room) {
    return loops_[loop].experiment.Step(*injector_, room);
  }
  // Takes the jump out of loops whose idle entries cost too much.
  void Settle(size_t loop);
  // Wall time of stops and of counting entries since the last call.
  int64_t DrainHeldNs();
  // Number and wall time of stops since the last call; the rest is zero.
  InjectionCost DrainStops();
  // Of what the rank was held so far.
  int64_t MeanStopNs() const;
  LoopMeasurement Measurement(size_t loop, uint64_t revision, int64_t now_ns) const;
  // kPermissionDenied, once: its rights are not those of its admission any more. All its loops are closed, and it is restored.
  absl::Status LeaveIfChanged();
  // OK: nothing of ours is left in it, or it has ended.
  absl::Status Restore();
  std::optional<RuntimeAddress> OriginalAddress(RuntimeAddress address) const {
    return injector_->OriginalAddress(address);
  }

 private:
  // A loop that was refused for the code that it shares with another, and what its own turn needs.
  struct Blocked {
    LoopSite place;
    LoopSetup setup;
    int32_t by = 0;  // number of the injector
  };
  struct Loop {
    LoopExperiment experiment;
    int32_t loop_to_inject = -1;  // -1: the injector does not know it
    int steps = 0;
    bool patched = false;
    int64_t since_ns = 0;    // patched since
    int64_t patched_ns = 0;  // before that
    bool given_up = false;
    int take_outs = 0;  // attempts to take the jump out since it was given up
    std::optional<Blocked> blocked = std::nullopt;
  };
  struct DryRun {
    bool on = false;
    absl::Status may_fork;
    PredictedCost predicted;
  };
  std::vector<InstalledLoop> InstallAll(const std::vector<LoopSite>& places,
                                        const std::vector<std::string>& variants,
                                        std::vector<int32_t>* numbers);
  void AddBlockedBy(size_t loop);
  using CostOfStep = int64_t (LoopExperiment::*)(const ShadowPrediction&) const;
  int64_t Cost(size_t loop, CostOfStep cost);
  std::optional<ShadowPrediction> Trimmed(size_t loop, const ShadowPrediction& whole);
  void Predict(int64_t shadow_ns);
  LoopMeasurement Predicted(size_t loop, LoopMeasurement measurement) const;
  void SetPatched(Loop& loop, bool patched);

  const RankInfo rank_;
  const std::unique_ptr<RankInjector> injector_;
  std::vector<Loop> loops_;
  int32_t loops_to_inject_ = 0;        // that the injector has numbers for
  std::optional<int64_t> checked_ns_;  // by LeaveIfChanged, the last time; none: it was not touched
  int64_t held_ns_ = 0;                // told by DrainHeldNs
  InjectionCost told_;                 // by DrainStops
  DryRun dry_run_;
};

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_RANK_EXPERIMENTS_H_
