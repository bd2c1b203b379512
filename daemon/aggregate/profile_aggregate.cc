// Dictionaries and limits, and what readers ask for.
#include "daemon/aggregate/profile_aggregate.h"

#include <algorithm>
#include <optional>

#include "daemon/aggregate/richer.h"

namespace perfd::daemon {
namespace {

constexpr char kOther[] = "(other)";

CodeLocation OtherLocation(const CodeLocation& folded) {
  CodeLocation location;
  location.category = folded.category;
  location.kernel_cause = folded.kernel_cause;
  location.function = kOther;
  return location;
}

size_t TextOf(const CodeLocation& location) {
  return location.module_id.size() + location.module_path.size() + location.function.size() +
         location.source.file.size() + location.kernel_caller.size();
}

}  // namespace

bool IsFolded(const CodeLocation& location, const CodeLocation& kept) {
  return kept.function == kOther && location.function != kOther;
}

uint32_t ProfileAggregate::InternNode(const std::string& name) {
  if (auto found = node_index_.find(name); found != node_index_.end()) return found->second;
  if (nodes_.size() >= limits_.nodes && name != kOther) return InternNode(kOther);
  const uint32_t id = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({});
  nodes_.back().node = name;
  node_index_.emplace(name, id);
  return id;
}

uint32_t ProfileAggregate::InternLocation(const CodeLocation& location) {
  std::string key = LocationKey(location);
  if (auto found = location_index_.find(key); found != location_index_.end()) {
    CodeLocation& known = locations_[found->second].location;
    if (!limits_.frozen && !(known == location) && Richer(location, known)) known = location;
    return found->second;
  }
  if (locations_.size() >= limits_.locations) {
    const CodeLocation other = OtherLocation(location);
    if (key != LocationKey(other)) return InternLocation(other);
  }
  const uint32_t id = static_cast<uint32_t>(locations_.size());
  locations_.push_back({location, {}});
  location_index_.emplace(std::move(key), id);
  return id;
}

size_t ProfileAggregate::Bytes() const {
  size_t bytes = cells_.capacity() * (sizeof(*cells_.begin()) + 1) +
                 threads_.size() * (sizeof(Thread) + sizeof(*thread_index_.begin())) +
                 paths_.Bytes() + findings_.Bytes();
  for (const LocationTotals& totals : locations_) {
    const CodeLocation& location = totals.location;
    bytes += sizeof(totals) + 2 * TextOf(location) + sizeof(*location_index_.begin());
  }
  for (const NodeTotals& node : nodes_) bytes += sizeof(node) + 2 * node.node.size();
  for (const auto& [key, rank] : ranks_) {
    bytes += sizeof(key) + sizeof(rank) + rank.info.node.size() + rank.info.job_id.size() +
             rank.info.command.size();
  }
  return bytes;
}

void ProfileAggregate::Freeze() {
  if (limits_.frozen) return;
  limits_.locations = locations_.size();
  limits_.threads =
      threads_.size() / 2;  // beyond it processes share a line each, beyond twice it all of them
  limits_.cells = cells_.size();
  limits_.ranks = ranks_.size();
  limits_.nodes = nodes_.size();
  limits_.frozen = true;
  paths_.Freeze();
  findings_.Freeze();
}

uint32_t ProfileAggregate::InternThread(const ShortThread& key) {
  if (auto found = thread_index_.find(key); found != thread_index_.end()) return found->second;
  ShortThread kept = key;
  if (threads_.size() >= limits_.threads) {
    kept.tid = 0;  // one entry for all further threads of the process
    if (auto found = thread_index_.find(kept); found != thread_index_.end()) return found->second;
  }
  if (threads_.size() >= 2 * limits_.threads) {
    kept = {InternNode(kOther), 0, 0, 0};
    if (auto found = thread_index_.find(kept); found != thread_index_.end()) return found->second;
  }
  const uint32_t id = static_cast<uint32_t>(threads_.size());
  threads_.push_back({kept, {}});
  thread_index_.emplace(kept, id);
  return id;
}

void ProfileAggregate::AddCell(uint32_t thread, uint32_t location, const Counts& counts) {
  const uint64_t key = uint64_t{thread} << 32 | location;
  if (cells_.size() < limits_.cells) {
    cells_[key] += counts;
  } else if (auto found = cells_.find(key); found != cells_.end()) {
    found->second += counts;
  } else {
    totals_.lost.cell_samples += counts.samples;
  }
}

void ProfileAggregate::AddRank(RankTotals rank, uint32_t node) {
  rank.info.node = nodes_[node].node;  // the node that sent it, whatever it says
  const ShortThread key{node, rank.info.rank, rank.info.pid, 0};
  if (auto found = ranks_.find(key); found != ranks_.end()) {
    RankTotals& known = found->second;
    if (!limits_.frozen && Richer(rank.info, known.info)) known.info = std::move(rank.info);
    known.elapsed_ns += rank.elapsed_ns;
    known.cpu_wait_ns += rank.cpu_wait_ns;
  } else if (ranks_.size() < limits_.ranks) {
    ranks_.emplace(key, std::move(rank));
  } else {
    ++totals_.lost.ranks;
  }
}

// A loop that was folded is told apart from no other: no loop. A place that was has no parts.
void ProfileAggregate::AddCall(const WindowCall& call, const CodeLocation& from,
                               const CodeLocation* loop, const std::vector<uint32_t>& ours) {
  WindowCall own{ours[call.location], std::nullopt, call.paths};
  if (loop != nullptr && !IsFolded(*loop, locations_[ours[*call.loop]].location))
    own.loop = ours[*call.loop];
  const bool folded = IsFolded(from, locations_[own.location].location);
  totals_.lost.stack_samples += folded ? call.paths : paths_.AddCall(own);
}

ThreadTotals ProfileAggregate::thread(size_t index) const {
  const Thread& thread = threads_[index];
  return {{nodes_[thread.key.node].node, thread.key.rank, thread.key.pid, thread.key.tid},
          thread.counts};
}

std::vector<RankTotals> ProfileAggregate::ranks() const {
  std::vector<RankTotals> ranks;
  ranks.reserve(ranks_.size());
  for (const auto& [key, rank] : ranks_) ranks.push_back(rank);
  return ranks;
}

ClusterSums ProfileAggregate::SumsOf(const LocationTotals& location, ShareBasis basis) const {
  ClusterSums sums;
  if (basis == ShareBasis::kWall) {
    sums.clusters = totals_.wall.clusters;
    sums.x = totals_.wall.elapsed_ns;
    sums.xx = totals_.wall.xx;
    sums.ww = totals_.wall.ww;
    sums.y = location.counts.wall_ns;
    sums.xy = location.wall.xy;
    sums.yy = location.wall.yy;
    sums.ww_y = location.wall.ww;
    return sums;
  }
  sums.clusters = totals_.clusters;
  sums.x = totals_.cpu_ns;
  sums.xx = totals_.xx;
  sums.ww = totals_.ww;
  sums.y = location.counts.cpu_ns;
  sums.xy = location.xy;
  sums.yy = location.yy;
  sums.ww_y = location.ww;
  return sums;
}

}  // namespace perfd::daemon
