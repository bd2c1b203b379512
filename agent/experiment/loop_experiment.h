// agent/experiment/loop_experiment.h - one loop on one rank: which shadow comes next, what is known so far.
//
// Shape    Step() while stage() is not kDone: census, live timing, a first look (COUNT and a capped TRACE), then shadows of the
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
#include "agent/shadow/rank_lab.h"
#include "core/analysis/saturation.h"
#include "core/model/loop_measurement.h"

namespace perfd {

inline constexpr int32_t kRefIndex = 0, kCountIndex = 1, kTraceIndex = 2;  // of every loop's copies

class LoopExperiment {
 public:
  enum class Stage { kCensus, kLive, kLook, kMeasure, kDone };

  LoopExperiment(LoopSetup setup, InstalledLoop installed);

  Stage stage() const { return stage_; }
  // Recovery mode: its steps pause nobody, they slow the rank down for a while.
  bool InPlace() const { return in_place_ && stage_ == Stage::kMeasure; }
  // Least wall time that the next step adds; 0: none.
  int64_t LeastCost(const ShadowPrediction& prediction) const;
  // Of a step that measures all that is missing, as far as one shadow can: several that measure less cost more.
  int64_t RoundCost(const ShadowPrediction& prediction) const;
  // Of one run; what is known of it so far.
  int64_t RunNs() const;
  StepCost Step(RankLab& lab, const StepRoom& room);
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
  const Census& census() const { return census_; }
  // What shadows need of the rank's memory. None: not known yet, or it did not suffice.
  std::optional<Footprint> footprint() const;
  // Why memory cannot be left out of shadows.
  void NoteNarrowing(const absl::Status& status) { narrow_note_ = std::string(status.message()); }
  std::string NarrowNote() const;

 private:
  void Finish(MeasureState state, const std::string& reason);
  void TakeCensus(RankLab& lab, const StepRoom& room);
  StepCost Look(RankLab& lab, const StepRoom& room);
  StepCost Measure(RankLab& lab, const StepRoom& room);
  StepCost RunShadow(RankLab& lab, const StepRoom& room, std::vector<RunWish> runs, bool restore,
                     ShadowAnswer* answer);
  bool LearnTrace(const ShadowAnswer& answer, const std::vector<RunWish>& runs);
  bool Refuse(const std::string& why);
  bool IsStretch(const ShadowAnswer& answer, uint64_t passes);
  void RepeatFailed(const char* variant, const std::string& failure);
  void Keep(const ShadowAnswer& answer, const std::vector<RunWish>& runs, int32_t skip);
  // loop_trips.cc
  std::vector<int32_t> TripChecks(const std::vector<int32_t>& variants) const;
  bool IsTripCheck(int32_t variant) const;
  void CheckTrips(const ShadowAnswer& answer, const std::vector<RunWish>& runs);
  void Reduce();
  void ForgetRuns();
  // loop_protocol.cc
  bool NeedsProtocol() const;
  int64_t EvictNs(Evict level) const;
  uint64_t SweptBytes() const;
  std::vector<Evict> Protocols() const;
  std::vector<RunWish> ProtocolRuns() const;
  int64_t ProtocolNs() const;
  StepCost ChooseProtocol(RankLab& lab, const StepRoom& room);
  void TakeNearest(const ShadowAnswer& answer, const std::vector<RunWish>& runs);
  // loop_places.cc
  void OpenPlaces();
  void Place(std::vector<RunWish>& runs) const;
  std::vector<RunWish> PlaceRuns() const;
  int64_t PlacesNs() const;
  bool NeedsPlaces() const;
  StepCost ChoosePlaces(RankLab& lab, const StepRoom& room);
  void TakePlaces(const ShadowAnswer& answer, const std::vector<RunWish>& runs);
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
  void TakeLive(RankLab& lab, const StepRoom& room);
  void TimeShort(RankLab& lab, const StepRoom& room);
  // loop_chain.cc
  void ChooseChain();
  void RunAlone(const std::string& why);
  bool KeepsChain(const std::string& failure);
  bool LeftEarly(const ShadowAnswer& answer, const std::vector<RunWish>& runs);
  bool Entered(int32_t variant) const;
  StepCost TimeChain(RankLab& lab, const StepRoom& room);
  std::map<int32_t, double> InstancesOf(const ShadowAnswer& answer,
                                        const std::vector<RunWish>& runs) const;
  const CodeCopy& CopyOf(size_t variant) const;
  InstalledLoop AsRun() const;
  bool ShortenChain(uint64_t passes, uint64_t most);
  bool Chained(int32_t variant) const;
  std::vector<Refusal> NotInAChain() const;
  // loop_recovery.cc
  void ChooseMode();
  StepCost Recover(RankLab& lab, const StepRoom& room);
  std::vector<Refusal> NotInPlace() const;
  int64_t InPlaceNs() const;
  int64_t LeastInPlace() const;
  std::vector<int32_t> InPlaceRound() const;
  void KeepInPlace(const RecoveryAnswer& answer, const std::vector<int32_t>& round);
  void CompareWithLive();
  void DescribeMode(LoopMeasurement& out) const;
  // loop_narrowing.cc
  static StepRoom Narrowed(const StepRoom& room);
  bool ForkIsTooLong(const StepRoom& room);
  bool NarrowingFailed(const absl::Status& status);
  bool MissedMemory(const ShadowAnswer& answer);
  void LeaveUnfinished(MeasureState state, const std::string& reason);

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
  double run_cycles_ = 0;          // of REF in a shadow, per instance
  Evict evict_ = Evict::kNothing;  // before each run
  bool protocol_chosen_ = false;
  bool new_places_ = false;    // no run stands where the same copy stood before
  bool places_tried_ = false;  // and both ways were compared with live
  TraceSummary trace_;
  bool trace_alone_ = false;  // a look of several runs failed
  int32_t short_looks_ = 0;  // that were over before the loop ran, or saw little but entry and exit
  bool short_by_detour_ = false;  // one of them ended in a detour
  std::vector<uint64_t> trips_;   // one per counted instance
  uint32_t shadows_ = 0;
  double probe_cycles_ = 0;
  std::vector<RunSample> runs_;
  std::set<std::string> trips_checked_;  // variants whose passes have been counted
  std::vector<Refusal> trip_refusals_;   // and who makes not as many as the loop
  Reduction reduction_;
  bool with_listings_ = false;
  std::vector<TripClass> trip_classes_;
  int32_t narrow_misses_ = 0;    // shadows that touched what had been left out
  int32_t narrow_failures_ = 0;  // in a row
  int32_t guess_failures_ = 0;   // of what the first look touches
  std::string narrow_note_;
  uint64_t instances_ = 0;               // of one run, in a chain; 0: one alone
  std::vector<Refusal> chain_refusals_;  // why there is none, or of single variants
  bool chain_tried_ = false;
  int32_t early_ends_ = 0;              // chains in a row that were left after few instances
  bool in_place_ = false;               // recovery mode
  std::vector<Refusal> mode_refusals_;  // why not, of the loop or of single variants
  uint32_t clusters_ = 0;               // of runs in place, so far
  double in_place_ns_ = 0;              // what one run adds besides an instance; 0: not yet known
  std::vector<double> likeness_;        // REF against the loop before which nothing ran
  std::vector<uint64_t> probes_;        // of empty copies; of a shadow: one
  InjectionCost cost_;
};

}  // namespace perfd

#endif  // AGENT_EXPERIMENT_LOOP_EXPERIMENT_H_
