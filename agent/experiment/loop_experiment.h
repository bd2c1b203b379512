// agent/experiment/loop_experiment.h - one loop on one rank: which shadow comes next, what is known so far.
//
// Shape    Open(...) after the install; then Step() while stage() is not kDone: census, live timing, a first look (COUNT and a
//          capped TRACE), then shadows of the stage that core/analysis asks for, until every interval is tight, enough runs are
//          valid, or the caller stops asking. Measurement() at any time.
// Units    ns of wall time; cycles of the TSC.
// Errors   a loop that cannot be measured ends in kDone with MeasureState::kRefused or kNeverEntered and the reason.
// Threads  thread-compatible; Step sleeps while the shadow runs.
// Source   design section 6, steps 5 to 8; hazards of measuring.
#ifndef AGENT_EXPERIMENT_LOOP_EXPERIMENT_H_
#define AGENT_EXPERIMENT_LOOP_EXPERIMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/experiment/run_schedule.h"
#include "agent/experiment/trace_summary.h"
#include "agent/shadow/rank_lab.h"
#include "core/analysis/saturation.h"
#include "core/model/loop_measurement.h"

namespace perfd {

inline constexpr double kShadowShare = 0.7;  // of the longest pause; the rest is for surprises

struct LoopSetup {
  std::string profile_id;
  std::string node;
  RankInfo rank;
  std::string loop_id;
  std::string location_key;
  int32_t lab_loop = 0;            // index in the lab
  uint64_t bias = 0;               // run-time address = ELF address + bias
  std::vector<std::string> asked;  // canonical names of the request
  int32_t repetitions = 31;
  int64_t shadow_ns = 0;    // longest pause
  double ticks_per_ns = 0;  // of the TSC
  bool with_listings = false;
};

// What a step may use.
struct StepRoom {
  int64_t credit_ns = 0;   // wall time that may be added now
  int64_t timeout_ns = 0;  // for the loop to be entered
  ShadowPrediction prediction;
};

struct StepCost {
  int64_t pause_begin_ns = 0;  // CLOCK_MONOTONIC; 0: nothing stood still
  int64_t pause_ns = 0;
  int64_t later_ns = 0;      // estimated: faults afterwards
  int64_t predicted_ns = 0;  // what this step was expected to cost
};

inline constexpr double kEvictNs = 4e6;  // a walk through a buffer of the size of the caches

class LoopExperiment {
 public:
  enum class Stage { kCensus, kLive, kLook, kMeasure, kDone };

  LoopExperiment(LoopSetup setup, InstalledLoop installed);

  Stage stage() const { return stage_; }
  // Least wall time that the next step adds; 0: none.
  int64_t LeastCost(const ShadowPrediction& prediction) const;
  StepCost Step(RankLab& lab, const StepRoom& room);
  // The caller asks no more: what is missing stays open for this reason.
  void Close(const std::string& reason);
  LoopMeasurement Measurement(uint64_t revision) const;
  const Census& census() const { return census_; }

 private:
  void Finish(MeasureState state, const std::string& reason);
  void TakeCensus(RankLab& lab);
  void TakeLive(RankLab& lab, const StepRoom& room);
  StepCost Look(RankLab& lab, const StepRoom& room);
  StepCost Measure(RankLab& lab, const StepRoom& room);
  StepCost RunShadow(RankLab& lab, const StepRoom& room, std::vector<RunWish> runs, bool restore,
                     ShadowAnswer* answer);
  bool LearnTrace(const ShadowAnswer& answer, const std::vector<RunWish>& runs);
  void RepeatFailed(const char* variant, const std::string& failure);
  void Keep(const ShadowAnswer& answer, const std::vector<RunWish>& runs, int32_t skip);
  void Reduce();
  void ChooseProtocol();
  int32_t IndexOf(const std::string& variant) const;
  int32_t BaseOf(int32_t variant) const;
  int64_t FixedCost(const ShadowPrediction& prediction) const;
  bool Learns() const;
  double InstanceNs() const;
  int64_t RestoreNs() const;
  int64_t RunNs() const;
  std::vector<std::string> Missing() const;
  void Fail(const absl::Status& status);

  const LoopSetup setup_;
  const InstalledLoop installed_;
  Stage stage_ = Stage::kCensus;
  MeasureState state_ = MeasureState::kOpen;
  std::string reason_;
  Census census_;
  int64_t census_ns_ = 0;   // of the next one
  int32_t failures_ = 0;    // in a row, of the current stage
  double live_cycles_ = 0;  // median instance of the slowest thread
  std::vector<uint64_t> live_;
  double run_cycles_ = 0;  // of REF in a shadow
  bool cold_ = false;
  bool cold_tried_ = false;
  double warm_gap_ = 0;  // |ln fidelity| of the warm protocol
  TraceSummary trace_;
  bool trace_alone_ = false;     // a look of several runs failed
  int32_t short_looks_ = 0;      // that saw too few passes between detours
  std::vector<uint64_t> trips_;  // one per counted instance
  uint32_t shadows_ = 0;
  double probe_cycles_ = 0;
  std::vector<RunSample> runs_;
  Reduction reduction_;
  InjectionCost cost_;
};

}  // namespace perfd

#endif  // AGENT_EXPERIMENT_LOOP_EXPERIMENT_H_
