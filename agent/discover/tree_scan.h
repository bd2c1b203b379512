// agent/discover/tree_scan.h - what runs below the processes that a target names: launchers among these, and with `tree` all of it.
//
// Shape    per scan: Members -> the pids to be judged; LeaveOut takes those that are no ranks out of the accepted ones.
// Rules    who was once in the tree stays in it, with all below, when its parent ends. A named process that is not the requester's
//          is judged (and refused), but what runs below it is not looked at. A reused pid is another process.
//          Left out: launchers (agent/discover/tree/launchers.h), shells and wrappers that do nothing and have children, and, once
//          there are MPI ranks, all others. Who was accepted once stays accepted.
//          A shell that has no child at the moment counts only where there is nothing else.
//          Without `tree`, LeaveOutNamed takes launchers out of the named ones, after a probe where one has children.
// Bounds   kMost processes, those nearest to the named ones.
// Threads  thread-bound.
#ifndef AGENT_DISCOVER_TREE_SCAN_H_
#define AGENT_DISCOVER_TREE_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "agent/discover/candidate.h"
#include "agent/discover/tree/launchers.h"
#include "agent/discover/tree/process_tree.h"
#include "agent/discover/verdict.h"
#include "agent/procfs/procfs.h"
#include "core/base/clock.h"
#include "core/model/profile.h"

namespace perfd::agent {

inline constexpr int64_t kProbeNs = 250'000'000;
inline constexpr int kMostProbes = 4;  // of named ones, where nothing below has worked yet

using SleepFor = std::function<void(absl::Duration)>;

class TreeScan {
 public:
  static constexpr size_t kMost = 4096;
  static constexpr size_t kMostTold = 64;  // launchers

  // Sorted. The named ones are among them even when they are gone.
  std::vector<int32_t> Members(const ProcFs& procfs, const Scope& scope);
  // The launchers that were not told before, or nothing. The first scan looks for a moment, the others compare with the last.
  std::vector<LauncherNote> LeaveOut(const ProcFs& procfs, const Clock& clock,
                                     const SleepFor& sleep, std::vector<Candidate>* accepted);
  // Anything of it did at the last scan.
  bool lives() const { return !members_.empty(); }
  // There were more than kMost at the last scan.
  bool cut() const { return cut_; }

 private:
  using Key = std::pair<int32_t, uint64_t>;  // pid, start ticks
  std::vector<int32_t> Roots(const ProcFs& procfs, const Scope& scope) const;
  // What the accepted ones have used since the last scan, or in a look.
  void ReadUse(const ProcFs& procfs, const Clock& clock, const SleepFor& sleep,
               const std::vector<Candidate>& accepted);
  bool IsLauncherNow(const ProcFs& procfs, const Candidate& candidate,
                     const std::vector<Candidate>& accepted) const;
  // A shell between two of its programs.
  bool Rests(const Candidate& candidate) const;
  void RetainTaken(bool first, std::vector<Candidate>* accepted);
  std::vector<LauncherNote> Report(const ProcFs& procfs, const std::vector<Candidate>& launchers,
                                   size_t working);
  void ForgetEnded();

  ProcessTree tree_{{}};
  std::map<int32_t, uint64_t> members_;  // pid -> start ticks
  std::map<Key, uint64_t> cpu_ns_;       // when it was read last
  std::map<int32_t, ProbedUse> uses_;   // only of those that were known before
  int64_t probe_ns_ = 0;                 // in which
  std::map<Key, bool> taken_;            // accepted once; whether it is an MPI rank
  std::set<Key> told_;
  int64_t read_ns_ = 0;  // 0: not yet
  bool scanned_ = false;
  bool cut_ = false;
};

// At most one note for each process. Disposition: refused, whatever becomes of the others.
std::vector<LauncherNote> LeaveOutNamed(const ProcFs& procfs, const Scope& scope,
                                        const SleepFor& sleep, std::vector<Candidate>* named);

}  // namespace perfd::agent

#endif  // AGENT_DISCOVER_TREE_SCAN_H_
