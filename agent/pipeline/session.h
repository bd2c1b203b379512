// agent/pipeline/session.h - one profile on one node: find the ranks, sample them, hand over
//                            windows, say how it went.
//
// Shape    Run() does everything and returns when the profile is over; Stop() ends it early from
//          another thread. Suspend() ends it without saying so: the daemon will ask another agent
//          process for the rest. kDiscovering -> kSampling -> kAnalyzing -> kFinished | kFailed,
//          each announced through SessionOutput.
// Errors   never returned: every trouble becomes a Notice with what to change.
// Threads  Run on one thread of its own; Stop is thread-safe.
#ifndef AGENT_PIPELINE_SESSION_H_
#define AGENT_PIPELINE_SESSION_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/discover/rank_finder.h"
#include "agent/pipeline/cost/session_costs.h"
#include "agent/pipeline/ranks/rank_changes.h"
#include "agent/pipeline/ranks/refusals.h"
#include "agent/pipeline/ranks/tracked_ranks.h"
#include "agent/pipeline/resolver.h"
#include "agent/pipeline/session_experiment.h"
#include "agent/pipeline/session_notices.h"
#include "agent/pipeline/session_update.h"
#include "agent/pipeline/session_windows.h"
#include "agent/pipeline/stack_choice.h"
#include "agent/pipeline/stack_worker.h"
#include "agent/pipeline/window_delivery.h"
#include "agent/sample/sample_source.h"
#include "core/base/clock.h"

namespace perfd::agent {

struct OpenedSource {
  std::unique_ptr<SampleSource> source;
  SamplingPrices prices;
  std::vector<Notice> thinned;          // what of the request the node leaves out
  std::vector<MemoryEvent> accesses{};  // that are sampled besides
};

// What a session needs from its node.
struct SessionTools {
  const ProcFs* procfs = nullptr;
  const RankFinder* finder = nullptr;
  const Clock* clock = nullptr;
  Resolver* resolver = nullptr;
  SessionOutput* output = nullptr;
  std::string node;
  std::function<void(int64_t ns)> sleep;  // empty: really sleeps
  std::function<uint64_t()> cpu_ns;       // used by the calling thread; empty: really
  std::function<absl::StatusOr<OpenedSource>(const ProfileSpec&, const Discovery&)> open_source;
  // For callpaths: dwarf.
  OpenStackSource open_stacks;
  // Empty: no loop is ever altered.
  MakeExperimenter make_experimenter;
  // Whether the node allows that now; empty: always.
  std::function<bool()> may_alter;
  // Claims processes for this session; returns those that another session already measures.
  std::function<std::vector<int32_t>(const std::vector<int32_t>&)> claim_pids;
  // The process has ended: its number may be that of another one. Empty: nobody wants to know.
  std::function<void(int32_t)> release_pid;
};

class Session final : private SampleSink {
 public:
  Session(SessionRequest request, SessionTools tools);

  void Run();
  void Stop() { stop_ = true; }
  // Which loops to measure by variants; thread-safe.
  void Measure(MeasureOrder order) {
    order.dry_run |= request_.spec.dry_run;  // whatever the order says
    experiment_.Order(std::move(order));
  }
  void Suspend();
  const std::string& profile_id() const { return request_.profile_id; }

 private:
  // What became of processes that were found; of several, the highest.
  enum class Taken { kGone, kRefused, kYes };
  // What was tried to add a process, and failed.
  struct Attempts {
    uint64_t start_ticks = 0;
    int made = 0;
  };
  static constexpr int kMostFailures = 3;  // with programs that live

  void RecordClock();
  bool Discover();
  // The profile follows a job of a scheduler, whose processes come and go until the session is
  // stopped.
  bool FollowsJob() const { return request_.wait_ns > 0; }
  bool DiscoverInTime();
  bool AwaitRanks(int64_t end_ns);
  Taken OpenSource(const Discovery& discovery);
  bool IsUpdate(const RejectedProcess& process);
  void RecordRefusals(const absl::StatusOr<Discovery>& discovery);
  void RecordLastRefusals();
  void Sample();
  double Seconds() const;  // since sampling began
  uint64_t CpuNs() const;
  UsedCpu UsedSoFar() const;
  void Rest(int64_t ns);
  void RestUnlessStopped(int64_t ns);
  void DrainOnce();
  void ScanForRanks();
  void RecordEnded();
  void FindNewRanks();
  Taken AddRank(const RankInfo& info);
  // It is sampled no longer: another profile may.
  void LetGo(int32_t pid);
  bool FirstScanIsDue(int64_t now_ns);
  void ScanEarly();
  void AdjustFrequency(const CostSpan& costs);
  CostSpan EndSpan();
  bool MayAlter() const;
  void FindLoops();
  void CloseWindow();
  void Finish();
  void Announce(NodeProgress::Phase phase);
  // Where an address was at that time.
  RawLocation Place(TrackedProcess& process, RuntimeAddress ip, uint64_t time_ns);
  void RecordCallPath(TrackedProcess& process, const perfd::Sample& sample);
  void ChooseStack(TrackedProcess& process, const perfd::Sample& sample);
  void ExchangeStacks();
  void CountPath(TrackedProcess& process, int32_t rank, bool kernel, uint64_t time_ns,
                 const CallPath& path);
  void RecordStackTroubles();
  void AwaitStacks();

  void OnSample(const perfd::Sample& sample) override;
  void OnAccess(const perfd::Sample& sample) override;
  void OnLostAccesses(uint64_t accesses) override;
  void OnMapping(const MappingEvent& event) override;
  void OnTask(const TaskEvent& event) override;
  void OnLost(uint64_t records) override;
  void OnThrottled() override;
  void OnMalformed() override;
  void OnLateThread(int32_t pid, int32_t tid, uint64_t cpu_ns) override;

  const SessionRequest request_;
  const SessionTools tools_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> suspended_ = false;

  ProcessScan scan_;
  TrackedRanks ranks_;
  std::unique_ptr<SampleSource> source_;
  std::shared_ptr<WindowDelivery> delivery_;  // also held by the resolver's callbacks
  SessionWindows windows_;
  SessionNotices notices_;
  RankChanges changes_;
  Refusals refusals_;
  SessionExperiment experiment_;
  std::vector<int32_t> children_;  // forked by ranks, seen in this drain, not yet sampled
  int64_t started_ns_ = 0;         // 0: not yet
  int64_t scanned_ns_ = 0;
  size_t first_probes_ = 0;
  int64_t drained_ns_ = 0;  // when the last drain began: what was sampled until then has been read
  int64_t next_scan_ns_ = 0;              // for ranks that start late
  std::map<int32_t, Attempts> attempts_;  // by pid; what cannot be added is said once
  int open_failures_ = 0;                 // of the source, while programs lived
  SessionCosts costs_;
  bool first_sample_announced_ = false;

  std::unique_ptr<StackWorker> stacks_;  // null: no stacks to unwind
  StackChoice stack_choice_;
  std::vector<StackTask> chosen_stacks_;  // of this drain
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_SESSION_H_
