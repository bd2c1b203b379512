// agent/experiment/node_experimenter.h - measures the hot loops of all ranks of one profile on this node, within its budget.
//
// Shape    Begin starts a thread: open and install every rank, then step after step - the least advanced loop first, all
//          ranks at the same time, so that their shadows contend for the machine as the job does - and at the end everything
//          is taken out again. A dry run ends after the preparation of every rank: no tracer is started, no rank is stopped,
//          altered or forked.
// Units    see agent/pipeline/experimenter.h.
// Errors   as notices and as reasons of measurements.
// Threads  thread "perfd-measure" does all stops; one short-lived thread per rank waits for a shadow.
// Bounds   End: the step under way (budget.shadow), then the restoring of each rank; kEndWithin altogether, then a notice.
#ifndef AGENT_EXPERIMENT_NODE_EXPERIMENTER_H_
#define AGENT_EXPERIMENT_NODE_EXPERIMENTER_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "agent/experiment/rank_bench.h"
#include "agent/pipeline/experimenter.h"
#include "agent/shadow/rank_lab.h"
#include "core/analysis/injection_budget.h"
#include "core/base/clock.h"

namespace perfd {

struct ExperimenterOptions {
  TracerOptions tracer;
  std::string journal_directory;
  std::string disable_file;  // while it exists nothing is injected
  const Clock* clock = nullptr;
  // Opens the lab of a rank; empty: RankLab::Open. Tests have labs of their own.
  std::function<absl::StatusOr<std::unique_ptr<RankLab>>(const RankInfo&, LabOptions)> open_lab;
};

// Pauses of ranks that overlap hold the job up once.
int64_t AddedWallNs(const std::vector<StepCost>& costs);

class NodeExperimenter final : public Experimenter {
 public:
  explicit NodeExperimenter(ExperimenterOptions options) : options_(std::move(options)) {}
  ~NodeExperimenter() override;

  void Begin(ExperimentRequest request) override;
  ExperimentNews Take() override;
  void End() override;
  bool Finished() const override { return finished_; }
  std::optional<uint64_t> OriginalAddress(int32_t pid, uint64_t address) const override;

 private:
  void Run();
  void Measure();
  void Rehearse();
  absl::Status MayMeasure() const;
  absl::Status StartTracer();
  void OpenRank(const RankPlaces& places);
  void Leave(const RankPlaces& places, MeasureState state, const absl::Status& why);
  std::vector<RankBench*> Benches() const;
  bool Step();
  size_t NextLoop() const;
  std::vector<RankBench*> Waiting(size_t loop) const;
  bool AwaitCredit(int64_t cost_ns);
  void StepRanks(size_t loop, const std::vector<RankBench*>& benches);
  void SpendHeld(const std::vector<RankBench*>& benches);
  void Publish(size_t loop, const std::vector<RankBench*>& benches);
  void CloseAll(const std::string& reason);
  void RestoreAll();
  bool Disabled() const;
  std::string DisabledText() const;
  void Notify(Notice::Severity severity, const absl::Status& status, int32_t pid);
  void Audit(AuditEntry entry, const RankInfo& rank);

  const ExperimenterOptions options_;
  ExperimentRequest request_;
  std::unique_ptr<Tracer> tracer_;
  std::unique_ptr<InjectionBudget> budget_;
  CostCorrection correction_;
  double ticks_per_ns_ = 0;
  uint64_t revision_ = 0;
  std::thread thread_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> finished_ = false;  // a dry run, with its last news

  mutable absl::Mutex mutex_;
  std::vector<std::shared_ptr<RankBench>> benches_
      ABSL_GUARDED_BY(mutex_);  // only Run's thread changes them
  ExperimentNews news_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perfd

#endif  // AGENT_EXPERIMENT_NODE_EXPERIMENTER_H_
