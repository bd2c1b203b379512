// daemon/report/rank_table.h - the ranks of a job, and one place's counts spread over them.
//
// Shape    built once per report; FillRow adds ranks, threads and their spread to a row.
// Units    CPU seconds.
// Threads  thread-compatible.
#ifndef DAEMON_REPORT_RANK_TABLE_H_
#define DAEMON_REPORT_RANK_TABLE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/model/report.h"
#include "daemon/aggregate/profile_aggregate.h"
#include "daemon/report/report_builder.h"

namespace perfd::daemon {

class RankTable {
 public:
  explicit RankTable(const ProfileAggregate& aggregate);

  // Every rank of the job, also those without samples, by rank, node, pid.
  const std::vector<RankSummary>& ranks() const { return ranks_; }
  void FillRow(uint32_t location, const ReportLimits& limits, ReportRow& row) const;
  // worst_rank, imbalance and ranks of the report. A process that was there for less than a kShortLife'th of the time of the longest is
  // in none but the last: a helper is no rank that has less to do.
  void FillReport(Report& report) const;

 private:
  static constexpr uint64_t kShortLife = 10;

  struct ThreadCell {
    uint32_t thread;
    Counts counts;
  };

  void CollectRanks(const ProfileAggregate& aggregate);
  void CollectCells(const ProfileAggregate& aggregate);
  void FillThreads(uint32_t location, size_t limit, ReportRow& row) const;
  void FillRanks(uint32_t location, size_t limit, ReportRow& row) const;
  bool IsCompared(size_t rank) const {
    return elapsed_ns_[rank] == 0 || elapsed_ns_[rank] >= longest_ns_ / kShortLife;
  }
  size_t IndexOf(const RankInfo& info) const;
  bool Repeated(size_t rank) const;  // another process has this rank number on this node
  std::string Name(size_t rank)
      const;  // "rank 3 on node17", with the pid where ranks repeat; empty with one rank

  const bool divided_;  // elapsed time is known
  std::vector<RankSummary> ranks_;
  std::vector<uint64_t> elapsed_ns_;  // of each of them; 0: not known
  uint64_t longest_ns_ = 0;           // of these
  std::vector<uint64_t> cpu_ns_;      // the same
  std::vector<ThreadTotals> threads_;
  std::vector<uint32_t> rank_of_thread_;
  std::vector<std::vector<ThreadCell>> cells_;  // of each place
};

}  // namespace perfd::daemon

#endif  // DAEMON_REPORT_RANK_TABLE_H_
