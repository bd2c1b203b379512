// agent/experiment/loop_experiment.h - one loop on one rank: which shadow comes next, what is known so far.
//
// Shape    Step() while stage() is not kDone: entry count, live timing, a first look (COUNT and a capped TRACE), then shadows of the
//          stage that core/analysis asks for, until every interval is tight or enough runs are valid. Measurement() at any time.
// Units    ns of wall time; cycles of the TSC.
// Errors   a loop that cannot be measured ends in kDone with MeasureState::kRefused or kNeverEntered and the reason.
// Threads  thread-compatible; Step sleeps while the shadow runs.
// Source   design section 6, steps 5 to 8; hazards of measuring.
#ifndef AGENT_EXPERIMENT_LOOP_EXPERIMENT_H_
#define AGENT_EXPERIMENT_LOOP_EXPERIMENT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/experiment/loop_step.h"
#include "agent/experiment/next_stage.h"
#include "agent/experiment/run_schedule.h"
#include "agent/experiment/trace_summary.h"
#include "agent/shadow/rank_injector.h"
#include "core/analysis/saturation.h"
#include "core/model/loop_measurement.h"

namespace perfd::agent {

inline constexpr int32_t kRefIndex = 0, kCountIndex = 1, kTraceIndex = 2;  // of every loop's copies

class LoopExperiment {
 public:
  enum class Stage { kEntryCount, kLive, kProbe, kMeasure, kDone };

  LoopExperiment(LoopSetup setup, InstalledLoop installed);

  Stage stage() const { return stage_; }
  // Recovery mode: its steps pause nobody, they slow the rank down for a while.
  bool InSitu() const { return in_situ_ && stage_ == Stage::kMeasure; }
  // Least wall time that the next step adds; 0: none.
  int64_t LeastCost(const ShadowPrediction& prediction) const;
  // Of a step that measures all that is missing, as far as one shadow can: several that measure less cost more.
  int64_t RoundCost(const ShadowPrediction& prediction) const;
  // Of one run; what is known of it so far.
  int64_t RunNs() const;
  StepCost Step(RankInjector& injector, const StepRoom& room);
  // The caller asks no more: what is missing stays open for this reason.
  void Close(const std::string& reason);
  // It is hot again: what ended because nobody came into the loop, or because time was up, goes on.
  void Reopen();
  // From now on measurements have the assembly: one rank shows it for all.
  void ShowListings() { with_listings_ = true; }
  bool Lists() const { return with_listings_ && HasFigures(); }
  bool HasFigures() const {
    return state_ != MeasureState::kRefused && !reduction_.figures.empty();
  }
  LoopMeasurement Measurement(uint64_t revision) const;
  // Of a dry run: whether short instances would be run in the rank itself, and why not.
  void PredictMode(LoopMeasurement& out) const;
  const EntryCount& entry_count() const { return entry_count_; }
  // What shadows need of the rank's memory. None: not known yet, or it did not suffice.
  std::optional<Footprint> footprint() const;
  // Why memory cannot be left out of shadows.
  void RecordTrim(const absl::Status& status) { trim_record_ = std::string(status.message()); }
  std::string TrimRecord() const;

 private:
  void Finish(MeasureState state, const std::string& reason);
  void CountEntries(RankInjector& injector, const StepRoom& room);
  StepCost Probe(RankInjector& injector, const StepRoom& room);
  StepCost Measure(RankInjector& injector, const StepRoom& room);
  StepCost RunShadow(RankInjector& injector, const StepRoom& room, std::vector<RunSpec> runs,
                     bool restore, ShadowAnswer* answer);
  bool LearnTrace(const ShadowAnswer& answer, const std::vector<RunSpec>& runs);
  bool Refuse(const std::string& why);
  bool IsStretch(const ShadowAnswer& answer, uint64_t passes);
  void RepeatFailed(const char* variant, const std::string& failure);
  void RecordRuns(const ShadowAnswer& answer, const std::vector<RunSpec>& runs, int32_t skip);
  // loop_trips.cc
  std::vector<int32_t> TripChecks(const std::vector<int32_t>& variants) const;
  bool IsTripCheck(int32_t variant) const;
  void CheckTrips(const ShadowAnswer& answer, const std::vector<RunSpec>& runs);
  void Reduce();
  void ForgetRuns();
  // loop_protocol.cc
  bool NeedsProtocol() const;
  int64_t EvictNs(Evict level) const;
  uint64_t SweptBytes() const;
  std::vector<Evict> Protocols() const;
  std::vector<RunSpec> ProtocolRuns() const;
  int64_t ProtocolNs() const;
  StepCost ChooseProtocol(RankInjector& injector, const StepRoom& room);
  void TakeNearest(const ShadowAnswer& answer, const std::vector<RunSpec>& runs);
  // loop_places.cc
  void OpenSites();
  void Place(std::vector<RunSpec>& runs) const;
  std::vector<RunSpec> AssignPlacements() const;
  int64_t PlacesNs() const;
  bool NeedsPlacements() const;
  StepCost ChoosePlacements(RankInjector& injector, const StepRoom& room);
  void ReadPlacements(const ShadowAnswer& answer, const std::vector<RunSpec>& runs);
  void DescribeCopies(std::vector<VariantFigures>& all) const;
  int32_t IndexOf(const std::string& variant) const;
  int32_t BaseOf(int32_t variant) const;
  int64_t FixedCost(const ShadowPrediction& prediction) const;
  int64_t PredictedNs(const ShadowPrediction& prediction, size_t runs) const;
  bool Learns() const;
  double InstanceNs() const;
  double InstancesNs() const;
  int64_t RestoreNs() const;
  uint64_t MostWritten() const;
  void RefFailed(const std::string& failure);
  int64_t LongestNs() const;
  StagePlan Plan() const;
  std::vector<std::string> Missing() const;
  std::vector<std::string> MissingInstances() const;
  void Fail(const absl::Status& status);
  // loop_live.cc
  void RunLiveTiming(RankInjector& injector, const StepRoom& room);
  void TimeShort(RankInjector& injector, const StepRoom& room);
  // loop_chain.cc
  void ChooseBatch();
  void RunAlone(const std::string& why);
  bool AcceptsBatch(const std::string& failure);
  bool LeftEarly(const ShadowAnswer& answer, const std::vector<RunSpec>& runs);
  bool Entered(int32_t variant) const;
  StepCost TimeBatch(RankInjector& injector, const StepRoom& room);
  std::map<int32_t, double> InstancesOf(const ShadowAnswer& answer,
                                        const std::vector<RunSpec>& runs) const;
  const CodeCopy& CopyOf(size_t variant) const;
  InstalledLoop AsRun() const;
  bool ShortenBatch(uint64_t passes, uint64_t most);
  bool Batched(int32_t variant) const;
  std::vector<Refusal> NotInABatch() const;
  // loop_recovery.cc
  void ChooseMode();
  StepCost Recover(RankInjector& injector, const StepRoom& room);
  std::vector<Refusal> NotInSitu() const;
  int64_t InSituNs() const;
  int64_t LeastInSitu() const;
  std::vector<int32_t> InSituRound() const;
  void KeepInSitu(const RecoveryAnswer& answer, const std::vector<int32_t>& round);
  void CompareWithLive();
  void DescribeMode(LoopMeasurement& out) const;
  // loop_narrowing.cc
  static StepRoom Trimmed(const StepRoom& room);
  bool ForkIsTooLong(const StepRoom& room);
  bool TrimFailed(const absl::Status& status);
  bool MissedMemory(const ShadowAnswer& answer);
  void LeaveUnfinished(MeasureState state, const std::string& reason);

  const LoopSetup setup_;
  const InstalledLoop installed_;
  Stage stage_ = Stage::kEntryCount;
  MeasureState state_ = MeasureState::kOpen;
  std::string reason_;
  EntryCount entry_count_;
  int64_t entry_count_ns_ = 0;  // of the next one
  int32_t failures_ = 0;        // in a row, of the current stage
  double live_cycles_ = 0;      // median instance of the slowest thread
  std::vector<uint64_t> live_;
  double run_cycles_ = 0;          // of REF in a shadow, per instance
  Evict evict_ = Evict::kNothing;  // before each run
  bool protocol_chosen_ = false;
  bool new_placements_ = false;    // no run stands where the same copy stood before
  bool placements_tried_ = false;  // and both ways were compared with live
  TraceSummary trace_;
  bool trace_alone_ = false;  // a look of several runs failed
  int32_t short_probes_ =
      0;  // that were over before the loop ran, or saw little but entry and exit
  bool short_by_excluded_path_ = false;  // one of them ended in a detour
  std::vector<uint64_t> trips_;          // one per counted instance
  uint32_t shadows_ = 0;
  double probe_cycles_ = 0;
  std::vector<RunSample> runs_;
  std::set<std::string> trips_checked_;  // variants whose passes have been counted
  std::vector<Refusal> trip_refusals_;   // and who makes not as many as the loop
  Reduction reduction_;
  bool with_listings_ = false;
  std::vector<TripClass> trip_classes_;
  int32_t trim_misses_ = 0;     // shadows that touched what had been left out
  int32_t trim_failures_ = 0;   // in a row
  int32_t guess_failures_ = 0;  // of what the first look touches
  std::string trim_record_;
  uint64_t instances_ = 0;               // of one run, in a chain; 0: one alone
  std::vector<Refusal> batch_refusals_;  // why there is none, or of single variants
  bool batch_tried_ = false;
  int32_t early_ends_ = 0;              // chains in a row that were left after few instances
  bool in_situ_ = false;                // recovery mode
  std::vector<Refusal> mode_refusals_;  // why not, of the loop or of single variants
  uint32_t clusters_ = 0;               // of runs in place, so far
  double in_situ_ns_ = 0;               // what one run adds besides an instance; 0: not yet known
  std::vector<double> likeness_;        // REF against the loop before which nothing ran
  std::vector<uint64_t> probes_;        // of empty copies; of a shadow: one
  InjectionCost cost_;
};

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_LOOP_EXPERIMENT_H_
