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

#include "absl/base/thread_annotations.h"
#include "agent/attach/memory.h"
#include "agent/shadow/cache_builder.h"
#include "agent/shadow/forking/memory_walk.h"
#include "agent/shadow/forking/preconditions.h"
#include "agent/shadow/forking/shadow_cost.h"
#include "agent/shadow/forking/trimmed_fork.h"
#include "agent/shadow/gaps.h"
#include "agent/shadow/injection.h"
#include "agent/shadow/journal.h"
#include "agent/shadow/rank_injector.h"
#include "agent/shadow/region_access.h"
#include "agent/shadow/region_doorbell.h"
#include "agent/shadow/timing/tick_clock.h"
#include "core/base/mutex.h"

namespace perfd::agent {

// An entry that saves its state, or its timed exit; no measurement is recorded
// (docs/benchmarks/constants.md#kslowentryns).
inline constexpr int64_t kSlowEntryNs = 400;

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
  InjectionCost cost() const override { return cost_; }

 private:
  struct PatchSite {
    BuiltLoop built;
    std::string loop_id;
    uint64_t empty_copy = 0;
    int32_t index = -1;  // of the Site; -1: the loop was refused
    TextIdentity text;
    std::vector<CodeRange> body;
    std::vector<ExpectBytesOp> code;  // as it was decoded
    bool patched = false;
    uint64_t charged_timeouts = 0;  // gatherings that did not complete and were charged
    uint64_t charged_cpu_us = 0;    // of its shadows
  };
  struct Cache {
    Reach reach;
    uint64_t address = 0;
    uint64_t bound = 0;
    int32_t places = 1;  // of a copy with branches
    std::vector<uint8_t> bytes;
  };

  ProcessInjector(RankInfo rank, InjectorOptions options, Memory memory, MemoryWalk probe);

  struct Batch {  // where the loops that are put in together begin
    size_t site = 0;
    size_t cache = 0;
  };

  static std::vector<ExpectBytesOp> CodeOf(const LoopCode& loop);
  ExpectBytesOp TrampolineOf(const PatchSite& site) const;
  std::vector<HoldOp> PatchOps(const PatchSite& site) const;
  absl::Status PatchAll();
  std::optional<bool> JumpIsIn(const PatchSite& site) const;

  // process_injector_install.cc
  absl::Status Prepare(const std::vector<LoopToInject>& loops);
  void Forget();
  std::vector<InstalledLoop> Installed(size_t first_site) const;
  absl::Status Lay(const std::vector<LoopToInject>& loops);
  static absl::StatusOr<Cache> FindSite(const std::vector<MapEntry>& maps, const Reach& reach,
                                        const std::vector<const LoopToInject*>& loops,
                                        uint64_t more_bytes);
  absl::Status RefuseUnfit(const std::vector<LoopToInject>& loops);
  absl::Status BuildAll(const std::vector<LoopToInject>& loops, size_t first_cache);
  void RecordSites(size_t first_site);
  absl::Status MapAll(size_t first_cache);
  absl::Status FillCaches(size_t first_cache);
  absl::Status FillRegion();
  absl::StatusOr<uint32_t> FillSites(size_t first_site, uint32_t map_used);
  std::vector<HoldOp> ProtectOps(size_t first_cache) const;
  void PublishAddresses();
  // takes_out: only what is ours, whoever the rank has become.
  absl::StatusOr<HoldReply> Hold(std::vector<HoldOp> ops, bool takes_out = false);
  void CountStops(const std::vector<int64_t>& stops_ns);
  void Audit(const char* action, const PatchSite* site, int64_t pause_ns,
             const absl::Status& outcome);

  // process_injector_add.cc
  absl::Status InsertJump(Batch first);
  absl::Status Announce(Batch first);
  void RemoveJumps(Batch first, size_t noted);
  void ForgetPlans();
  void ForgetCaches(Batch first);

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
  absl::StatusOr<uint32_t> InSitu() const;
  absl::StatusOr<bool> SomebodyReads() const;
  absl::Status AwaitNobodyInSitu();
  absl::Status GiveBackJumped();
  absl::StatusOr<RecoveryAnswer> RunRecovery(const PatchSite& site, const ShadowPlan& plan,
                                             int64_t timeout_ns);
  absl::StatusOr<RecoveryAnswer> CollectRecovery(const PatchSite& site, const ShadowPlan& plan,
                                                 int64_t longest_ns);

  // process_injector_watch.cc
  absl::StatusOr<PatchSite*> SiteOf(int32_t loop, bool must_be_patched);
  absl::StatusOr<RankHazards> CheckHazards();
  absl::Status ReadMemoryCached();
  absl::Status Beat();
  absl::Status BeatIfDue();
  absl::Status RegionIsThere() const;
  bool Cancelled() const { return options_.cancelled && options_.cancelled(); }
  absl::Status MayAlter() const;  // kCancelled: not any more
  absl::Status SetMode(const PatchSite& site, uint32_t mode);
  absl::Status ForgetEndedThreads();
  void LearnLaterFaults();
  absl::StatusOr<std::vector<ThreadRecord>> Records() const;
  void ChargeArmed(PatchSite& site, const ShadowPlan& plan,
                   const std::vector<ThreadRecord>& before);

  const RankInfo rank_;
  const InjectorOptions options_;
  const Memory memory_;
  MemoryWalk memory_walk_;
  const TickClock ticks_;
  std::optional<RegionAccess> region_;
  std::optional<RegionDoorbell> doorbell_;
  Injection injection_;
  std::vector<PatchSite> sites_;
  std::vector<Cache> caches_;
  std::vector<ProtectRange> protects_;  // of the last shadow
  uint32_t generation_ = 0;
  ShadowCost shadow_cost_;
  std::optional<TrimWork> trim_;                                          // of the last shadow
  absl::StatusOr<TrimWork> cached_ = absl::UnknownError("never looked");  // for predictions
  int64_t cached_until_ns_ = 0, memory_cache_until_ns_ = 0;
  int32_t stuck_marks_ = 0;                // the kernel did not take back
  MemoryFacts forked_;                     // what the last shadow copied
  std::optional<uint64_t> faults_before_;  // at the end of the last shadow
  int64_t shadow_end_ns_ = 0, beat_ns_ = 0;
  InjectionCost cost_;
  std::optional<MemoryCache> memory_cache_;
  bool installed_ = false, uninstall_tried_ = false;
  bool tracer_died_ = false;  // or gave up a call, in one of our holds

  mutable Mutex mutex_;
  std::vector<AddressPair> addresses_ ABSL_GUARDED_BY(mutex_);  // sorted by copy
  std::vector<PcRange> code_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_INJECTOR_PROCESS_INJECTOR_H_
