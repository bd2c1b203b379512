#include "daemon/report/loop_verdicts.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/analysis/injection_total.h"
#include "core/analysis/job_verdict.h"
#include "core/base/clock.h"
#include "daemon/report/called_times.h"

namespace perfd::daemon {
namespace {

using RanksByLoop = std::map<std::string, std::vector<const LoopMeasurement*>>;

RanksByLoop Group(const MeasuredLoops& measured) {
  RanksByLoop by_loop;
  for (const auto& [key, loop] : measured.loops()) by_loop[loop.loop_id].push_back(&loop);
  return by_loop;
}

// The one that computes for most of the time, by either time.
const RankSummary* SlowestRank(const std::vector<RankSummary>& ranks, ShareBasis basis) {
  const auto seconds = basis == ShareBasis::kWall ? &RankSummary::compute_wall_seconds
                                                  : &RankSummary::compute_seconds;
  const auto slowest = std::max_element(
      ranks.begin(), ranks.end(),
      [seconds](const RankSummary& a, const RankSummary& b) { return a.*seconds < b.*seconds; });
  return slowest == ranks.end() ? nullptr : &*slowest;
}

// Shares of one row, by the time that decides.
struct RowShares {
  double own = 0;
  Interval own_interval;
  double inclusive = 0;
  CalledShare called;
};

RowShares SharesOf(const ReportRow& row) {
  if (!row.wall.has_value())
    return {row.share, row.share_interval, row.inclusive_share, row.called};
  return {row.wall->share, row.wall->interval, row.wall->inclusive, row.wall->called};
}

LoopTime OwnTimeOf(const ReportRow& row, const RankSummary* slowest) {
  LoopTime time;
  const RowShares shares = SharesOf(row);
  time.share = shares.own;
  time.share_low = shares.own_interval.low;
  time.share_high = shares.own_interval.high;
  time.slowest_share = time.share;  // until a rank is known
  for (const RankShare& rank : row.ranks) {
    const double in_loop = row.wall.has_value() ? rank.wall_share_of_rank : rank.seconds;
    if (in_loop > 0) time.rank_times.push_back(in_loop);
  }
  if (slowest == nullptr) return time;
  time.slowest_node = slowest->info.node;
  time.slowest_pid = slowest->info.pid;
  time.slowest_rank = absl::StrCat("rank ", slowest->info.rank, " on ", slowest->info.node);
  time.slowest_share = 0;
  for (const RankShare& share : row.ranks) {
    if (share.node == slowest->info.node && share.rank == slowest->info.rank)
      time.slowest_share = row.wall.has_value() ? share.wall_share_of_rank : share.share_of_rank;
  }
  return time;
}

// Copies of a loop hold the loops inside it and what it calls, and saturations are of their time as well. Each rank's is taken to
// be divided among a loop and those inside it as the job's. What is called on a path that was left out is in no copy: then it
// may be that nothing of it is.
LoopTime TimeOf(const ReportRow& row, const RankSummary* slowest, double called_by_slowest,
                bool left_out) {
  LoopTime time = OwnTimeOf(row, slowest);
  const RowShares shares = SharesOf(row);
  const double inner = shares.inclusive - shares.called.share;
  const auto with = [&](double own, double called) {
    const double all = shares.own > 0 ? own * std::max(1.0, inner / shares.own) : inner;
    return std::min(1.0, all + called);
  };
  time.share = with(time.share, shares.called.share);
  time.share_low = with(time.share_low, left_out ? 0 : shares.called.interval.low);
  time.share_high = with(time.share_high, shares.called.interval.high);
  time.slowest_share =
      with(time.slowest_share, slowest == nullptr ? shares.called.share : called_by_slowest);
  return time;
}

bool LeavesOut(const std::vector<const LoopMeasurement*>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const LoopMeasurement* loop) { return !loop->excluded_paths.empty(); });
}

// What part of the rank's time its loops call, by LocationId.
class CalledByRank {
 public:
  CalledByRank(const ProfileAggregate& aggregate, const RankSummary* rank, ShareBasis basis)
      : basis_(basis) {
    if (rank == nullptr) return;
    called_ = CalledTimesOf(aggregate, rank->info);
    seconds_ = basis == ShareBasis::kWall ? rank->elapsed_seconds : rank->seconds;
  }

  double Of(const std::string& loop_id) const {
    const auto found = called_.find(loop_id);
    if (found == called_.end() || seconds_ <= 0) return 0;
    const uint64_t ns = basis_ == ShareBasis::kWall ? found->second.wall_ns : found->second.cpu_ns;
    return std::min(1.0, static_cast<double>(ns) / kNsPerSecond / seconds_);
  }

 private:
  const ShareBasis basis_;
  double seconds_ = 0;
  absl::flat_hash_map<std::string, InclusiveTime> called_;
};

double BestGain(const LoopVerdict& loop) {
  return loop.gains.empty() ? 0 : loop.gains.front().of_job.value;
}

void SortByGain(std::vector<LoopVerdict>& loops) {
  std::sort(loops.begin(), loops.end(), [](const LoopVerdict& a, const LoopVerdict& b) {
    if (BestGain(a) != BestGain(b)) return BestGain(a) > BestGain(b);
    if (a.share != b.share) return a.share > b.share;
    return a.loop_id < b.loop_id;
  });
}

const ReportRow* FindLoop(const std::vector<ReportRow>& rows, const std::string& id) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const ReportRow& row) { return row.id == id; });
  return found == rows.end() ? nullptr : &*found;
}

int64_t ElapsedNs(const Report& report) {
  int64_t elapsed = 0;
  for (const NodeCoverage& node : report.nodes) elapsed = std::max(elapsed, node.covered_ns);
  return elapsed;
}

}  // namespace

void FillVerdicts(const ProfileAggregate& aggregate, size_t ranks, Report& report) {
  const MeasuredLoops& measured = aggregate.findings().measured();
  const RankSummary* slowest = SlowestRank(report.ranks, report.time.basis());
  const CalledByRank called(aggregate, slowest, report.time.basis());
  for (auto& [id, of_loop] : Group(measured)) {
    const ReportRow* row = FindLoop(report.loops, id);
    const LoopTime time =
        row == nullptr ? LoopTime{} : TimeOf(*row, slowest, called.Of(id), LeavesOut(of_loop));
    report.findings.verdicts.push_back(JudgeLoop(of_loop, time, {.ranks = ranks}));
    for (const auto& [key, listing] : measured.listings()) {
      if (key.first == id) report.findings.verdicts.back().listings.push_back(listing);
    }
  }
  SortByGain(report.findings.verdicts);
  std::vector<const LoopMeasurement*> all;
  for (const auto& [key, loop] : measured.loops()) all.push_back(&loop);
  report.findings.injection =
      TotalInjection(all, measured.pauses(), measured.audited_ns(), ElapsedNs(report));
}

std::vector<LoopVerdict> TopVerdicts(const ProfileAggregate& aggregate,
                                     const std::vector<ReportRow>& rows, size_t count) {
  std::vector<LoopVerdict> verdicts;
  for (auto& [id, of_loop] : Group(aggregate.findings().measured())) {
    const ReportRow* row = FindLoop(rows, id);
    if (row == nullptr) continue;
    verdicts.push_back(
        JudgeLoop(of_loop, TimeOf(*row, nullptr, 0, LeavesOut(of_loop)), {.ranks = 0}));
  }
  SortByGain(verdicts);
  if (verdicts.size() > count) verdicts.resize(count);
  return verdicts;
}

}  // namespace perfd::daemon
