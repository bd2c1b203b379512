// agent/discover/process_scan.h - what earlier scans of /proc found, for one target and requester: makes the next cheap.
//
// Shape    the caller keeps it and passes it to every RankFinder::Find. A process that was judged costs one read of its
//          stat; it is judged anew when it is another one, has another name (exec), or was judged long ago.
// Units    an exec that keeps the name is seen after kHoldNs to 2 x kHoldNs (spread, or all would come at once).
// Rules    remembers the MPI job that was found first, and the rank numbers given to processes without one.
//          follows_job: of a job (or a tree of processes) whose programs come and go. Between two of them there is nothing but the shell of its
//          script, which is no rank; the next one has the number of the one that ended.
// Threads  thread-bound.
#ifndef AGENT_DISCOVER_PROCESS_SCAN_H_
#define AGENT_DISCOVER_PROCESS_SCAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "agent/discover/numbering.h"
#include "agent/discover/tree_scan.h"
#include "agent/discover/verdict.h"
#include "core/base/clock.h"

namespace perfd::agent {

class ProcessScan {
 public:
  static constexpr int64_t kHoldNs = 10 * kNsPerSecond;

  // `clock` outlives the scan.
  explicit ProcessScan(const Clock& clock, bool follows_job = false) : clock_(&clock) {
    numbers_.reuse = follows_job;
  }

  // The verdict on this process while it holds; null: judge it. Valid until the next call of any method.
  const Verdict* Recall(int32_t pid, const ProcessStamp& stamp) const;
  void Remember(const ProcessStamp& stamp, const Verdict& verdict);
  // Forgets all but `pids`, which are sorted.
  void Retain(const std::vector<int32_t>& pids);

  const Clock& clock() const { return *clock_; }
  bool first() const { return scans_ == 0; }
  void RecordScanned() { ++scans_; }
  bool follows_job() const { return numbers_.reuse; }
  GivenNumbers& numbers() { return numbers_; }
  // Of a target with `tree`.
  TreeScan& tree() { return tree_; }
  // The job whose ranks are meant, once any were found.
  std::optional<std::string>& job_id() { return job_id_; }

 private:
  struct Entry {
    uint64_t start_ticks = 0;
    std::string command;
    int64_t judge_again_ns = 0;
    Verdict verdict;
  };

  const Clock* clock_;
  absl::flat_hash_map<int32_t, Entry> entries_;
  GivenNumbers numbers_;
  TreeScan tree_;
  std::optional<std::string> job_id_;
  uint64_t scans_ = 0;
};

}  // namespace perfd::agent

#endif  // AGENT_DISCOVER_PROCESS_SCAN_H_
