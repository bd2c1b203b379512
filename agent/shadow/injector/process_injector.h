// agent/shadow/injector/process_injector.h - the RankInjector of a real process: holds it by the tracer, talks to its region.
//
// Shape    see rank_injector.h. One region, up to kMaxCaches code caches, one site per accepted loop; one shadow at a time.
// Threads  Install, SetPatched, Uninstall: the tracer's thread. OriginalAddress: any.
#ifndef AGENT_SHADOW_INJECTOR_PROCESS_INJECTOR_H_
#define AGENT_SHADOW_INJECTOR_PROCESS_INJECTOR_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/attach/memory.h"
#include "agent/shadow/forking/memory_walk.h"
#include "agent/shadow/forking/preconditions.h"
#include "agent/shadow/forking/shadow_cost.h"
#include "agent/shadow/forking/trimmed_fork.h"
#include "agent/shadow/rank/injected_rank.h"
#include "agent/shadow/rank_injector.h"

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
  absl::StatusOr<RecoveryAnswer> Recover(const RecoveryRequest& request) override;
  absl::Status SetPatched(int32_t loop, bool patched) override;
  absl::Status Uninstall() override;
  std::optional<RuntimeAddress> OriginalAddress(RuntimeAddress address) const override;
  absl::Status StillAdmitted() const override;
  InjectionCost cost() const override { return rank_.cost; }

 private:
  ProcessInjector(const RankInfo& rank, InjectorOptions options, Memory memory, MemoryWalk probe);

  // process_injector_shadow.cc
  absl::StatusOr<ShadowPlan> MakePlan(const PatchSite& site, const ShadowRequest& request) const;
  absl::Status AddRun(const PatchSite& site, const RunSpec& request, ShadowPlan* plan,
                      uint32_t* selves) const;
  absl::Status Arm(const PatchSite& site, const ShadowPlan& plan, int64_t countdown);
  absl::Status AwaitShadow(const PatchSite& site, const ShadowPlan& plan, int64_t timeout_ns);
  absl::StatusOr<ShadowAnswer> EndShadow(const PatchSite& site, const ShadowPlan& plan,
                                         const ShadowRequest& request, const absl::Status& ended);
  int64_t PauseNs(const PatchSite& site) const;
  absl::Status ServeShadow(const PatchSite& site, const ShadowPlan& plan, bool* served);
  absl::StatusOr<ShadowAnswer> Collect(const PatchSite& site, const ShadowPlan& plan,
                                       const ShadowRequest& request);

  // process_injector_trim.cc
  absl::Status MayTrim(int32_t team) const;
  absl::StatusOr<TrimWork> BeginTrim(const Footprint& footprint, int32_t team);
  absl::StatusOr<TeamPointers> ReadPointers(uint32_t team) const;
  absl::Status ChooseNow(const ShadowPlan& plan);
  absl::Status AnswerLeader(const ShadowPlan& plan);
  absl::Status EndTrim();

  // process_injector_recovery.cc
  absl::Status MayRecover(const PatchSite& site, const RecoveryRequest& request);
  absl::StatusOr<ShadowPlan> MakeRecoveryPlan(const PatchSite& site,
                                              const RecoveryRequest& request) const;
  absl::Status ArmRecovery(const PatchSite& site, const ShadowPlan& plan);
  absl::StatusOr<bool> AwaitRecovery(const PatchSite& site, const ShadowPlan& plan,
                                     int64_t timeout_ns);
  absl::StatusOr<bool> SomebodyReads() const;
  absl::Status AwaitNobodyInSitu();
  absl::Status GiveBackJumped();
  absl::StatusOr<RecoveryAnswer> RunRecovery(const PatchSite& site, const ShadowPlan& plan,
                                             int64_t timeout_ns);
  absl::StatusOr<RecoveryAnswer> CollectRecovery(const PatchSite& site, const ShadowPlan& plan,
                                                 int64_t longest_ns);

  // process_injector_watch.cc
  absl::StatusOr<RankHazards> CheckHazards();
  absl::Status ReadMemoryCached();
  void LearnLaterFaults();
  void ChargeArmed(PatchSite& site, const ShadowPlan& plan,
                   const std::vector<ThreadRecord>& before);

  InjectedRank rank_;
  MemoryWalk memory_walk_;
  std::vector<ProtectRange> protects_;  // of the last shadow
  ShadowCost shadow_cost_;
  std::optional<TrimWork> trim_;                                          // of the last shadow
  absl::StatusOr<TrimWork> cached_ = absl::UnknownError("never looked");  // for predictions
  int64_t cached_until_ns_ = 0, memory_cache_until_ns_ = 0;
  int32_t stuck_marks_ = 0;                // the kernel did not take back
  MemoryFacts forked_;                     // what the last shadow copied
  std::optional<uint64_t> faults_before_;  // at the end of the last shadow
  int64_t shadow_end_ns_ = 0;
  std::optional<MemoryCache> memory_cache_;
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_INJECTOR_PROCESS_INJECTOR_H_
