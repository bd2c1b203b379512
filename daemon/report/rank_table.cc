#include "daemon/report/rank_table.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "core/analysis/imbalance.h"
#include "daemon/report/location_row.h"
#include "daemon/report/share_of.h"

namespace perfd::daemon {
namespace {

double Seconds(uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

// What a rank computes: no waiting, no runtimes or libraries, no kernel.
bool IsCompute(const CodeLocation& location) {
  if (IsWaitingLoop(location)) return false;
  return location.category == Category::kLoop || location.category == Category::kOutsideLoop ||
         location.category == Category::kUnknown;
}

auto Order(const RankInfo& rank) {
  return std::tie(rank.rank, rank.node, rank.pid);
}

bool Before(const RankInfo& a, const RankInfo& b) {
  return Order(a) < Order(b);
}

// Sorts before every process of the rank.
RankInfo FirstOfRank(RankInfo info) {
  info.pid = 0;
  return info;
}

RankInfo InfoOf(const ThreadKey& thread) {
  RankInfo info;
  info.node = thread.node;
  info.rank = thread.rank;
  info.pid = thread.pid;
  info.world_size = 0;
  return info;
}

// Keeps the `limit` lines with the most of `cpu_ns`, in the order they had; of equal ones the first.
template <typename Line>
void RetainHeaviest(size_t limit, const std::vector<uint64_t>& cpu_ns, std::vector<Line>& lines) {
  if (lines.size() <= limit) return;
  std::vector<size_t> heaviest(lines.size());
  std::iota(heaviest.begin(), heaviest.end(), size_t{0});
  std::stable_sort(heaviest.begin(), heaviest.end(),
                   [&](size_t a, size_t b) { return cpu_ns[a] > cpu_ns[b]; });
  heaviest.resize(limit);
  std::sort(heaviest.begin(), heaviest.end());
  std::vector<Line> kept;
  kept.reserve(heaviest.size());
  for (const size_t i : heaviest) kept.push_back(std::move(lines[i]));
  lines = std::move(kept);
}

}  // namespace

RankTable::RankTable(const ProfileAggregate& aggregate)
    : divided_(BasisOf(aggregate) == ShareBasis::kWall) {
  CollectRanks(aggregate);
  CollectCells(aggregate);
}

void RankTable::CollectRanks(const ProfileAggregate& aggregate) {
  std::vector<RankInfo> infos;
  std::map<std::tuple<int32_t, std::string, int32_t>, RankTotals> times;
  for (RankTotals& rank : aggregate.ranks()) {
    infos.push_back(rank.info);
    times.emplace(Order(rank.info), std::move(rank));
  }
  std::sort(infos.begin(), infos.end(), Before);
  const size_t described = infos.size();
  const auto has_rank = [&](const RankInfo& info) {
    const auto end = infos.begin() + static_cast<std::ptrdiff_t>(described);
    const auto it = std::lower_bound(infos.begin(), end, FirstOfRank(info), Before);
    return it != end && it->rank == info.rank && it->node == info.node;
  };
  for (size_t i = 0; i < aggregate.thread_count(); ++i) {
    threads_.push_back(aggregate.thread(i));
    RankInfo info = InfoOf(threads_.back().key);
    // A process that nobody described is a child of its rank, and part of it.
    if (!has_rank(info)) infos.push_back(std::move(info));
  }
  std::sort(infos.begin(), infos.end(), Before);
  infos.erase(
      std::unique(infos.begin(), infos.end(),
                  [](const RankInfo& a, const RankInfo& b) { return Order(a) == Order(b); }),
      infos.end());
  for (RankInfo& info : infos) {
    RankSummary& rank = ranks_.emplace_back();
    rank.info = std::move(info);
    const auto found = times.find(Order(rank.info));
    elapsed_ns_.push_back(found == times.end() ? 0 : found->second.elapsed_ns);
    longest_ns_ = std::max(longest_ns_, elapsed_ns_.back());
    if (found == times.end() || !divided_) continue;
    rank.elapsed_seconds = Seconds(found->second.elapsed_ns);
    rank.cpu_wait_seconds = Seconds(found->second.cpu_wait_ns);
  }
}

// The process itself, else the first of its rank: a child's parent.
size_t RankTable::IndexOf(const RankInfo& info) const {
  const auto before = [](const RankSummary& a, const RankInfo& b) { return Before(a.info, b); };
  auto found = std::lower_bound(ranks_.begin(), ranks_.end(), info, before);
  if (found == ranks_.end() || Before(info, found->info))
    found = std::lower_bound(ranks_.begin(), ranks_.end(), FirstOfRank(info), before);
  return static_cast<size_t>(std::distance(ranks_.begin(), found));
}

bool RankTable::Repeated(size_t rank) const {
  const auto same = [&](size_t other) {
    return other < ranks_.size() && ranks_[other].info.rank == ranks_[rank].info.rank &&
           ranks_[other].info.node == ranks_[rank].info.node;
  };
  return same(rank + 1) || (rank > 0 && same(rank - 1));
}

void RankTable::CollectCells(const ProfileAggregate& aggregate) {
  cpu_ns_.resize(ranks_.size());
  std::vector<Counts> compute(ranks_.size());
  for (const ThreadTotals& thread : threads_) {
    const size_t rank = IndexOf(InfoOf(thread.key));
    rank_of_thread_.push_back(static_cast<uint32_t>(rank));
    ranks_[rank].samples += thread.counts.samples;
    if (thread.counts.samples > 0) ++ranks_[rank].threads;
    cpu_ns_[rank] += thread.counts.cpu_ns;
  }
  cells_.resize(aggregate.locations().size());
  aggregate.ForEachCell([&](uint32_t thread, uint32_t location, const Counts& counts) {
    cells_[location].push_back({thread, counts});
    if (IsCompute(aggregate.locations()[location].location))
      compute[rank_of_thread_[thread]] += counts;
  });
  for (size_t i = 0; i < ranks_.size(); ++i) {
    ranks_[i].seconds = Seconds(cpu_ns_[i]);
    ranks_[i].compute_seconds = Seconds(compute[i].cpu_ns);
    if (divided_) ranks_[i].compute_wall_seconds = Seconds(compute[i].wall_ns);
  }
}

std::string RankTable::Name(size_t rank) const {
  if (ranks_.size() <= 1) return "";
  const RankInfo& info = ranks_[rank].info;
  const std::string pid = Repeated(rank) ? absl::StrCat(" (pid ", info.pid, ")") : "";
  return absl::StrCat("rank ", info.rank, " on ", info.node, pid);
}

void RankTable::FillThreads(uint32_t location, size_t limit, ReportRow& row) const {
  const auto order = [&](const ThreadCell& cell) {
    const ThreadKey& key = threads_[cell.thread].key;
    return std::tie(key.rank, key.node, key.pid, key.tid);
  };
  std::vector<ThreadCell> cells = cells_[location];
  std::sort(cells.begin(), cells.end(),
            [&](const ThreadCell& a, const ThreadCell& b) { return order(a) < order(b); });
  std::vector<uint64_t> cpu_ns;
  for (const ThreadCell& cell : cells) {
    const ThreadTotals& thread = threads_[cell.thread];
    row.threads.push_back(
        {thread.key, cell.counts.samples, ShareOf(cell.counts.cpu_ns, thread.counts.cpu_ns)});
    cpu_ns.push_back(cell.counts.cpu_ns);
  }
  row.thread_count = static_cast<int32_t>(row.threads.size());
  RetainHeaviest(limit, cpu_ns, row.threads);
}

void RankTable::FillRanks(uint32_t location, size_t limit, ReportRow& row) const {
  std::map<uint32_t, Counts> by_rank;
  for (const ThreadCell& cell : cells_[location])
    by_rank[rank_of_thread_[cell.thread]] += cell.counts;
  std::vector<uint64_t> cpu_ns;
  for (const auto& [rank, counts] : by_rank) {
    const RankSummary& summary = ranks_[rank];
    cpu_ns.push_back(counts.cpu_ns);
    row.ranks.push_back({summary.info.node, summary.info.rank, counts.samples,
                         Seconds(counts.cpu_ns), ShareOf(counts.cpu_ns, cpu_ns_[rank]),
                         divided_ ? ShareOf(counts.wall_ns, elapsed_ns_[rank]) : 0});
  }
  std::vector<double> seconds;
  std::vector<size_t> index;
  size_t without = 0;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!IsCompared(rank)) continue;
    const auto found = by_rank.find(static_cast<uint32_t>(rank));
    if (found == by_rank.end()) {
      ++without;
      continue;
    }
    seconds.push_back(Seconds(found->second.cpu_ns));
    index.push_back(rank);
  }
  const Spread spread = SpreadOf(seconds, without);
  row.rank_seconds.min = spread.min;
  row.rank_seconds.median = spread.median;
  row.rank_seconds.max = spread.max;
  row.imbalance = spread.imbalance;
  if (!seconds.empty()) row.worst_rank = Name(index[spread.worst]);
  RetainHeaviest(limit, cpu_ns, row.ranks);
}

void RankTable::FillRow(uint32_t location, const ReportLimits& limits, ReportRow& row) const {
  FillThreads(location, limits.threads_per_row, row);
  FillRanks(location, limits.ranks_per_row, row);
}

void RankTable::FillReport(Report& report) const {
  report.ranks = ranks_;
  std::vector<double> compute;
  std::vector<size_t> index;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!IsCompared(rank)) continue;
    compute.push_back(ranks_[rank].compute_seconds);
    index.push_back(rank);
  }
  const Spread spread = SpreadOf(compute);
  report.imbalance = spread.imbalance;
  if (spread.max > 0) report.worst_rank = Name(index[spread.worst]);
}

}  // namespace perfd::daemon
