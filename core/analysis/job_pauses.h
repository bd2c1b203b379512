// core/analysis/job_pauses.h - how long the ranks of a job stood still, seen from the job: what overlaps counts once.
//
// Shape    pauses of one node are united by its own clock (PauseSet). Pauses of several nodes are summed, unless they are told
//          as leased pauses of one generation that certainly overlap: of those the longest counts. Adding and merging are
//          commutative, associative and (leased pauses, spans) idempotent up to the limits.
// Limits   kMaxSpans spans and kMaxLeased leased pauses; what comes later counts in full, and is counted.
// Units    ns; spans in ns since the epoch of the node's clock, leased pauses see core/model/pause_lease.h.
// Source   two ranks that stand still at the same moment are between the same two synchronisations, and the later one is held
//          up by the longer pause, not by both. Of pauses that do not overlap nothing is known: they are summed.
//          "Certainly": the spans overlap also when each is shorter by its clock's error at both ends.
#ifndef CORE_ANALYSIS_JOB_PAUSES_H_
#define CORE_ANALYSIS_JOB_PAUSES_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/analysis/injection_total.h"
#include "core/model/pause_lease.h"

namespace perfd {

// Of the pauses of one generation, one of each node: how much of their sum is counted elsewhere already.
int64_t OverlappedNs(std::span<const LeasedPause> nodes);

class JobPauses {
 public:
  static constexpr size_t kMaxSpans = 1 << 20;
  static constexpr size_t kMaxLeased = 1 << 18;
  using Leased = std::map<std::pair<uint64_t, std::string>, LeasedPause>;  // by generation, node

  // By the clock of `node`.
  void Add(const std::string& node, int64_t begin_ns, int64_t end_ns);
  // Of two for the same generation and node the longer one stays.
  void AddLeased(const std::string& node, const LeasedPause& pause);
  // Leased pauses that were not told: they count in full.
  void AddLost(uint64_t pauses) { lost_ += pauses; }
  void AddOverflow(const std::string& node, int64_t ns) { nodes_[node].AddOverflow(ns); }
  void Merge(const JobPauses& other);

  int64_t TotalNs() const;
  // Of several nodes at the same time, and in TotalNs only once.
  int64_t SharedNs() const;

  const std::map<std::string, PauseSet>& nodes() const { return nodes_; }
  const Leased& leased() const { return leased_; }
  uint64_t lost() const { return lost_; }
  bool operator==(const JobPauses&) const = default;

 private:
  std::map<std::string, PauseSet> nodes_;
  size_t spans_ = 0;  // of all nodes_
  Leased leased_;
  uint64_t lost_ = 0;
};

// What leases cost the job as against a node, while a profile runs. The daemon tells it to the nodes.
class LeaseLedger {
 public:
  // Generations; older ones are closed: what comes later to them counts in full.
  static constexpr size_t kMaxOpen = 64;

  void Add(const std::string& node, const LeasedPause& pause);
  // How much of the job's time a node's pauses stand for: the job's pauses over those of the node that paused most.
  // 1: all overlapped; the number of nodes: none did. 0: nobody knows yet.
  double Charge();

 private:
  using Generation = std::map<std::string, LeasedPause>;
  void Close(uint64_t generation);

  std::map<uint64_t, Generation> open_;
  uint64_t closed_until_ = 0;
  int64_t closed_shared_ns_ = 0;
  int64_t sum_ns_ = 0;
  std::map<std::string, int64_t> by_node_;
};

}  // namespace perfd

#endif  // CORE_ANALYSIS_JOB_PAUSES_H_
