// agent/sample/thread_rings.h - one event and ring per thread of some processes, kept in step with the threads.
//
// Shape    AddProcess opens what runs now; OpenThread what a FORK record announced; Rescan finds what was missed.
//          Rings are closed in two steps: Close* marks, Sweep removes what had been marked before it was last read.
// Safety   a process whose ids change (a setuid program, a root process that becomes someone) is closed, never reopened.
// Errors   AddProcess: kNotFound, kPermissionDenied, kResourceExhausted, kUnimplemented; then nothing of it is open.
// Threads  thread-bound.
// Source   perf_event_open(2): pid > 0, cpu -1. `inherit` cannot be used: kernel/events/core.c perf_mmap refuses it
//          with cpu -1.
#ifndef AGENT_SAMPLE_THREAD_RINGS_H_
#define AGENT_SAMPLE_THREAD_RINGS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/procfs/process_rights.h"
#include "agent/procfs/procfs.h"
#include "agent/sample/event_choice.h"
#include "agent/sample/ring/perf_event.h"
#include "core/perfdata/records/event_set.h"

namespace perfd::agent {

// A ring with its event, not yet among the others.
struct OpenedRing {
  PerfRing ring;
  perf_event_attr attr;  // its event's
};

struct SampleRing {
  PerfRing ring;
  EventSet events;  // the one of its time first, then those of accesses
  int32_t pid = 0;  // 0: a ring per CPU, of a cgroup
  int32_t tid = 0;
  uint64_t rate = 0;      // its frequency or period now, as RateValue gives it
  bool restless = false;  // it cannot rest: it samples at a longer period instead
  bool closing = false;   // no more records will be written
  bool closed_before_probe = false;
  bool read_since_close = false;
  uint64_t corrupt_reported = 0;
  uint64_t lost_recorded = 0;  // the sum of its LOST records
  uint64_t lost_reported = 0;  // to the sink

  // Notes what is there to be read. Closed before that: nothing can arrive after it.
  void Snapshot() {
    closed_before_probe = closing;
    ring.buffer().Snapshot();
  }
};

// Whom a pid was of when it was added.
struct SampledProcess {
  uint64_t start_ticks = 0;
  ProcessRights rights;

  bool operator==(const SampledProcess&) const = default;
};

// A thread that ran before it was sampled.
struct LateThread {
  int32_t pid = 0;
  int32_t tid = 0;
  uint64_t cpu_ns = 0;
};

class ThreadRings {
 public:
  // `budget`: of the node; outlives it, null: no limit.
  ThreadRings(ProcFs procfs, ChosenEvent event, uint64_t ring_bytes, RingBudget* budget);

  // Of the rings of threads to come.
  RingMaker& maker() { return *maker_; }
  absl::Status AddProcess(int32_t pid);
  // One ring per online CPU for everything in the cgroup at this directory, as large as the budget allows.
  absl::Status AddCgroup(const std::string& directory);
  // A thread that started after its process was added. Failures are counted as late threads and tried again.
  // `announced`: by a FORK record, so it has run unseen even when it is gone by now.
  // kNotFound: it is gone.
  absl::Status OpenThread(int32_t pid, int32_t tid, bool announced);
  // Not opened until the next Rescan, by somebody who tells of it.
  void LeaveOut(int32_t tid) { told_late_.insert(tid); }
  // A process was forked by one of ours: should it be added, what it ran until then is late.
  void RecordForked(int32_t pid);
  void RecordExec(SampleRing& seen_in, int32_t pid);
  void RecordExit(SampleRing& ring);
  void CloseProcess(int32_t pid);
  bool HasRing(int32_t tid) const { return open_tids_.contains(tid); }
  void Rescan();
  // Every Drain: looks whether a process goes on after its leader ended.
  void FollowLeaders();
  void Sweep();
  absl::Status SetFrequency(double hz);
  // Every event rests that can, or goes on; one that cannot goes on at `mean_hz` from its first rest on, while others rest. An
  // error: none of them can.
  absl::Status Rest(double mean_hz);
  void GoOn();
  // ns that their threads ran while events rested, since the rest began or since the last call; 0 when none does.
  uint64_t DrainRestedNs();
  // Of those that cannot rest.
  absl::Status SetRestless(double mean_hz);
  int restless() const;
  // Why the last one cannot.
  const absl::Status& why_restless() const { return why_restless_; }
  // Of the time that all events are on, when those that can are on for `share` of it.
  double OnShare(double share) const;

  // By index: the container may grow while it is walked, and its elements stay where they are.
  size_t size() const { return rings_.size(); }
  SampleRing& at(size_t i) { return *rings_[i]; }
  int thread_count() const;
  std::vector<LateThread> DrainLate() { return std::exchange(late_, {}); }
  // Processes that called exec where no ring could see it.
  std::vector<int32_t> DrainExecs() { return std::exchange(execs_, {}); }
  const ChosenEvent& event() const { return event_; }
  AccessEvents& accesses() { return event_.accesses; }

 private:
  // What Add and Rescan found is still the same process with the same rights; true also when /proc cannot be read.
  bool IsSame(int32_t pid) const;
  absl::Status Open(int32_t pid, int32_t tid);
  absl::Status OpenNewThreads(int32_t pid, bool* found);
  absl::Status OpenAllThreads(int32_t pid);
  void ForgetRingsFrom(size_t first);
  void ReportLate(int32_t pid, int32_t tid);
  // `told`: what was in told_late_ before.
  void RescanProcess(int32_t pid, const absl::flat_hash_set<int32_t>& told);
  absl::Status Add(OpenedRing opened, const PerfTarget& target, int32_t pid);
  absl::Status MayRest(SampleRing& ring);
  absl::Status SetRate(SampleRing& ring, uint64_t value) const;

  ProcFs procfs_;
  ChosenEvent event_;
  std::unique_ptr<RingMaker> maker_;  // where it is: the leases of rings_ know it
  int64_t clock_offset_ns_;
  bool rests_ = false;
  absl::Status why_restless_;
  std::vector<std::unique_ptr<SampleRing>> rings_;
  absl::flat_hash_map<int32_t, SampledProcess> processes_;  // by pid
  absl::flat_hash_set<int32_t> open_tids_;
  absl::flat_hash_set<int32_t> told_late_;  // without a ring, tried again by each Rescan
  absl::flat_hash_set<int32_t> forked_;
  absl::flat_hash_map<int32_t, int> leader_ended_;  // pid -> how often to look again
  std::vector<LateThread> late_;
  std::vector<int32_t> execs_;
};

// "0-3,8,10-11" of /sys/devices/system/cpu/online -> CPU numbers; empty when it does not parse. Pure.
std::vector<int32_t> ParseCpuList(absl::string_view text);

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_THREAD_RINGS_H_
