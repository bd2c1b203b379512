// agent/experiment/node_experimenter.h - measures the hot loops of all ranks of one profile on this node, within its budget.
//
// Shape    Begin starts a thread: open and install every rank, then step after step - the least advanced loop first, all
//          ranks at the same time, so that their shadows contend for the machine as the job does - and at the end everything
//          is taken out again. A dry run ends after the preparation of every rank: no tracer is started, no rank is stopped,
//          altered or forked. A later order adds loops and gives others up; once measuring has ended its loops only get the
//          reason (revised_orders.cc). Under a lease ranks are paused in its windows only (lease_gate.h, leased_steps.cc);
//          what steps cost: step_costs.cc.
// Units    see agent/pipeline/experimenter.h.
// Errors   as notices and as reasons of measurements.
// Threads  thread "perfd-measure" does all stops; one short-lived thread per rank waits for a shadow.
// Bounds   End: what waits for a rank gives up at once, a shadow under way ends (budget.shadow), then each rank is restored.
//          By itself everything ends kReserveNs before the profile. kMostKnown loops over the profile.
#ifndef AGENT_EXPERIMENT_NODE_EXPERIMENTER_H_
#define AGENT_EXPERIMENT_NODE_EXPERIMENTER_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "agent/experiment/kill_switch.h"
#include "agent/experiment/late_healer.h"
#include "agent/experiment/lease_gate.h"
#include "agent/experiment/lease_table.h"
#include "agent/experiment/rank_experiments.h"
#include "agent/pipeline/experimenter.h"
#include "agent/shadow/rank_injector.h"
#include "core/analysis/injection_budget.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace perfd::agent {

struct ExperimenterOptions {
  TracerOptions tracer;
  const Journal* journal = nullptr;            // outlives it; null: nothing can be altered
  std::string disable_file;                    // while it exists nothing is injected
  const std::atomic<bool>* allowed = nullptr;  // by the site, from now on; null: always
  const Clock* clock = nullptr;
  bool allow_recovery =
      false;  // the site's half of the opt-in; the other is MeasureOrder::recovery
  const LeaseTable* leases = nullptr;  // may be null
  LateHealer* late = nullptr;          // goes on with ranks that cannot be restored; may be null
  std::function<absl::Status(int32_t pid)> answers = nullptr;  // as InjectorOptions; may be empty
  std::function<void(int64_t ns)> sleep;                       // empty: really sleeps
  // Opens the injector of a rank; empty: RankInjector::Open. Tests have injectors of their own.
  std::function<absl::StatusOr<std::unique_ptr<RankInjector>>(const RankInfo&, InjectorOptions)>
      open_injector;
};

// At most between two looks: nobody tells that the kill switch was thrown.
inline constexpr int64_t kNapNs = 200 * kNsPerMs;
// Before the end of the profile: for taking everything out.
inline constexpr int64_t kReserveNs = kNsPerSecond;

// Pauses of ranks that overlap hold the job up once.
int64_t AddedWallNs(const std::vector<StepCost>& costs);

class NodeExperimenter final : public Experimenter {
 public:
  explicit NodeExperimenter(ExperimenterOptions options)
      : options_(std::move(options)), switch_(options_.allowed, options_.disable_file) {}
  ~NodeExperimenter() override;

  void Begin(ExperimentRequest request) override;
  void Revise(ExperimentRequest request) override;
  void Charge(int64_t wall_ns) override { charged_ns_ += wall_ns; }
  ExperimentUpdate Drain() override;
  void End() override;
  bool Finished() const override { return finished_; }
  std::optional<RuntimeAddress> OriginalAddress(int32_t pid, RuntimeAddress address) const override;

 private:
  void Run();
  void Measure();
  void Rehearse();
  absl::Status MayMeasure() const;
  void OpenRank(const RankLoops& places);
  void RecordUnmeasured(const RankLoops& places, MeasureState state, const absl::Status& why);
  std::vector<RankExperiments*> AllRankExperiments() const;
  bool Step();
  // revised_orders.cc
  void TakeUpOrder();
  bool OrderIsDue() const;
  bool AwaitOrder() const;
  bool AwaitInstall() const;
  void OpenResumed();
  void TakeUpLoops(const ExperimentRequest& order);
  int64_t InstallWaitNs() const;
  void AddWaiting();
  void AddTo(RankExperiments* bench);
  void LeaveWaiting(MeasureState state, const absl::Status& why);
  void Retire(MeasureState state, const absl::Status& why);
  void AnswerLate(const MeasureOrder& order, MeasureState state, const absl::Status& why);
  void ChooseLister(size_t loop);
  bool StepLeased();
  std::pair<Stage, int> Advanced(size_t loop) const;
  double Price(size_t loop) const;
  size_t NextLoop() const;
  std::optional<LeaseTurn> NextTurn() const;
  bool AwaitSlot(const LeaseSlot& slot);
  int64_t CostOf(size_t loop, const std::vector<RankExperiments*>& benches,
                 int64_t (RankExperiments::*each)(size_t)) const;
  double ChargeOf(size_t loop, const RankExperiments& bench) const;
  void CloseUnaffordable(size_t loop, const std::vector<RankExperiments*>& benches,
                         int64_t cost_ns);
  void Nap(int64_t ns) const;
  std::vector<RankExperiments*> Waiting(size_t loop) const;
  bool AwaitCredit(int64_t cost_ns, int64_t (InjectionBudget::*wait_ns)(int64_t, int64_t) const);
  // `slot`: null where nothing is gated.
  void StepRanks(size_t loop, const std::vector<RankExperiments*>& benches, const LeaseSlot* slot);
  void SpendLeased(const std::vector<StepCost>& all, const LeaseSlot& slot);
  void Recharge();
  void SpendHeld(const std::vector<RankExperiments*>& benches);
  void Publish(size_t loop, const std::vector<RankExperiments*>& benches);
  void LeaveChanged();
  void CloseAll(const std::string& reason);
  void RestoreAll();
  absl::Status HealAfter(const RankInfo& rank, const absl::Status& restored);
  std::string EndText() const;  // why loops stay open
  void Notify(Notice::Severity severity, const absl::Status& status, int32_t pid);
  void Audit(AuditEntry entry, const RankInfo& rank);

  struct LeftRank {
    const RankLoops* places;  // of request_
    absl::Status why;         // kUnavailable: it is suspended, and opened once it runs again
    MeasureState state() const {
      return absl::IsUnavailable(why) ? MeasureState::kOpen : MeasureState::kRefused;
    }
  };
  struct Retired {
    MeasureState state;
    absl::Status why;
  };

  const ExperimenterOptions options_;
  const KillSwitch switch_;
  ExperimentRequest request_;             // its loops: all that were ever taken up
  std::vector<MeasureLoop> newest_;       // of the newest order, heaviest first; empty: request_'s
  std::vector<MeasureLoop> waiting_;      // ordered, not yet bought
  std::vector<RankLoops> waiting_ranks_;  // where they lie
  std::vector<LeftRank> left_;            // ranks without an injector
  std::string ended_by_;                  // the disable file, when that ended it
  std::unique_ptr<Tracer> tracer_;
  std::unique_ptr<InjectionBudget> budget_;
  CostCorrection correction_;
  std::optional<LeaseGate> gate_;  // from Begin on
  double charge_ = 1;              // of leased_ns_
  int64_t leased_ns_ = 0;          // spent within windows
  double ticks_per_ns_ = 0;
  uint64_t revision_ = 0;
  std::thread thread_;
  std::atomic<int64_t> charged_ns_ = 0;  // by the session, not yet spent
  std::atomic<bool> stop_ = false;
  std::atomic<bool> finished_ = false;  // a dry run, with its last news

  mutable Mutex mutex_;
  mutable CondVar wake_;  // with mutex_: an order has come, or it is to end
  std::vector<std::shared_ptr<RankExperiments>> benches_
      ABSL_GUARDED_BY(mutex_);  // only Run's thread changes them
  ExperimentUpdate update_ ABSL_GUARDED_BY(mutex_);
  uint64_t lost_notices_ ABSL_GUARDED_BY(mutex_) = 0;  // since the last Drain
  uint64_t lost_audit_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t lost_measurements_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<ExperimentRequest> revised_ ABSL_GUARDED_BY(mutex_);  // the newest
  // Run has ended: what it left behind (request_, benches) is the session's thread's, and later orders are answered with this.
  std::optional<Retired> retired_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_NODE_EXPERIMENTER_H_
