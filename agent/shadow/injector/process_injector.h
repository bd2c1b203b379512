// agent/shadow/injector/process_injector.h - the RankInjector of a real process: which operation a request is, on which site, and whether it
//                                            may begin.
//
// Shape    owns the state (rank/) and what is learnt from shadow to shadow; the operations are in install/, watch/ and run/.
// Errors   as RankInjector.
// Threads  as RankInjector.
#ifndef AGENT_SHADOW_INJECTOR_PROCESS_INJECTOR_H_
#define AGENT_SHADOW_INJECTOR_PROCESS_INJECTOR_H_

#include <memory>
#include <optional>
#include <vector>

#include "agent/attach/memory.h"
#include "agent/shadow/forking/memory_walk.h"
#include "agent/shadow/rank/injected_rank.h"
#include "agent/shadow/rank_injector.h"
#include "agent/shadow/run/shadow_forecast.h"
#include "agent/shadow/run/trimmed_forks.h"

namespace perfd::agent {

class ProcessInjector final : public RankInjector {
 public:
  static absl::StatusOr<std::unique_ptr<ProcessInjector>> Open(const RankInfo& rank,
                                                               InjectorOptions options);
  ~ProcessInjector() override;

  absl::StatusOr<std::vector<InstalledLoop>> Install(std::vector<LoopToInject> loops) override;
  absl::StatusOr<std::vector<InstalledLoop>> Add(std::vector<LoopToInject> loops) override;
  absl::StatusOr<std::vector<InstalledLoop>> Rehearse(std::vector<LoopToInject> loops) override;
  absl::StatusOr<EntryCount> CountEntries(int32_t loop, int64_t ns) override;
  ShadowPrediction PredictShadow() override;
  ShadowPrediction PredictTrimmed(const Footprint& footprint, int32_t team) override;
  absl::StatusOr<ShadowAnswer> RunShadow(const ShadowRequest& request) override;
  absl::StatusOr<std::vector<uint64_t>> TimeLive(int32_t loop, int32_t count,
                                                 int64_t timeout_ns) override;
  absl::StatusOr<std::vector<LiveBatch>> TimeLiveBatches(int32_t loop, int32_t count,
                                                         uint64_t turns,
                                                         int64_t timeout_ns) override;
  absl::StatusOr<RecoveryAnswer> Recover(const RecoveryRequest& request) override;
  absl::Status SetPatched(int32_t loop, bool patched) override;
  std::optional<int32_t> BlockedBy(int32_t loop) const override;
  absl::Status Release(int32_t loop) override;
  absl::Status Uninstall() override;
  std::optional<RuntimeAddress> OriginalAddress(RuntimeAddress address) const override;
  absl::Status StillAdmitted() const override;
  InjectionCost cost() const override { return rank_.cost; }

 private:
  ProcessInjector(const RankInfo& rank, InjectorOptions options, Memory memory, MemoryWalk walk);

  InjectedRank rank_;
  ShadowForecast forecast_;
  TrimmedForks trimmed_forks_;
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_INJECTOR_PROCESS_INJECTOR_H_
