#include "core/analysis/job_pauses.h"

#include <algorithm>
#include <tuple>

namespace perfd {
namespace {

// What certainly was a pause.
struct Sure {
  int64_t begin_ns, end_ns, pause_ns;
};

bool Longer(const LeasedPause& a, const LeasedPause& b) {
  return std::tie(a.pause_ns, a.begin_ns, a.error_ns) >
         std::tie(b.pause_ns, b.begin_ns, b.error_ns);
}

template <typename Map>
std::vector<LeasedPause> Values(const Map& by_node) {
  std::vector<LeasedPause> values;
  for (const auto& [node, pause] : by_node) values.push_back(pause);
  return values;
}

}  // namespace

int64_t OverlappedNs(std::span<const LeasedPause> nodes) {
  std::vector<Sure> sure;
  for (const LeasedPause& pause : nodes) {
    const int64_t begin = pause.begin_ns + pause.error_ns;
    const int64_t end = pause.begin_ns + pause.pause_ns - pause.error_ns;
    if (begin < end) sure.push_back({begin, end, pause.pause_ns});
  }
  std::sort(sure.begin(), sure.end(),
            [](const Sure& a, const Sure& b) { return a.begin_ns < b.begin_ns; });
  int64_t shared = 0, sum = 0, longest = 0, until = 0;
  for (const Sure& pause : sure) {
    if (sum == 0 || pause.begin_ns >= until) {  // the first of its group
      shared += sum - longest;
      sum = longest = 0;
      until = pause.end_ns;
    }
    sum += pause.pause_ns;
    longest = std::max(longest, pause.pause_ns);
    until = std::max(until, pause.end_ns);
  }
  return shared + sum - longest;
}

void JobPauses::Add(const std::string& node, int64_t begin_ns, int64_t end_ns) {
  if (begin_ns >= end_ns) return;
  PauseSet& set = nodes_[node];
  const size_t before = set.spans().size();
  if (spans_ < kMaxSpans)
    set.Add(begin_ns, end_ns);
  else
    set.AddOverflow(end_ns - begin_ns);
  spans_ += set.spans().size();
  spans_ -= before;
}

void JobPauses::AddLeased(const std::string& node, const LeasedPause& pause) {
  const auto at = leased_.find({pause.generation, node});
  if (at != leased_.end()) {
    if (Longer(pause, at->second)) at->second = pause;
  } else if (leased_.size() < kMaxLeased) {
    leased_.emplace(std::pair(pause.generation, node), pause);
  } else {
    ++lost_;
  }
}

void JobPauses::Merge(const JobPauses& other) {
  for (const auto& [node, set] : other.nodes_) {
    for (const PauseSpan& span : set.spans()) Add(node, span.begin_ns, span.end_ns);
    if (set.overflow_ns() > 0) AddOverflow(node, set.overflow_ns());
  }
  for (const auto& [key, pause] : other.leased_) AddLeased(key.second, pause);
  lost_ += other.lost_;
}

int64_t JobPauses::SharedNs() const {
  int64_t shared = 0;
  std::vector<LeasedPause> generation;
  for (auto it = leased_.begin(); it != leased_.end();) {
    const uint64_t number = it->first.first;
    generation.clear();
    for (; it != leased_.end() && it->first.first == number; ++it) generation.push_back(it->second);
    shared += OverlappedNs(generation);
  }
  return shared;
}

// Whatever nodes say of their overlap: the job stood still at least as long as each of them.
int64_t JobPauses::TotalNs() const {
  int64_t sum = 0, most = 0;
  for (const auto& [node, set] : nodes_) {
    const int64_t of_node = std::min(kMostCost, set.TotalNs());
    sum = std::min(kMostCost, sum + of_node);
    most = std::max(most, of_node);
  }
  return std::max(most, sum - SharedNs());
}

void LeaseLedger::Close(uint64_t generation) {
  const auto it = open_.find(generation);
  closed_shared_ns_ = std::min(kMostCost, closed_shared_ns_ + OverlappedNs(Values(it->second)));
  closed_until_ = std::max(closed_until_, generation + 1);
  open_.erase(it);
}

void LeaseLedger::Add(const std::string& node, const LeasedPause& pause) {
  int64_t& of_node = by_node_[node];
  of_node = std::min(kMostCost, of_node + pause.pause_ns);
  sum_ns_ = std::min(kMostCost, sum_ns_ + pause.pause_ns);
  if (pause.generation < closed_until_) return;
  open_[pause.generation].insert_or_assign(node, pause);
  while (open_.size() > kMaxOpen) Close(open_.begin()->first);
}

double LeaseLedger::Charge() {
  // The windows of nodes arrive one after the other: a single one says nothing about overlaps.
  if (by_node_.size() < 2) return 0;
  int64_t most = 0;
  for (const auto& [node, ns] : by_node_) most = std::max(most, ns);
  if (most == 0) return 0;
  int64_t shared = closed_shared_ns_;
  for (const auto& [generation, nodes] : open_) shared += OverlappedNs(Values(nodes));
  const double job = static_cast<double>(std::max(most, sum_ns_ - shared));
  return std::clamp(job / static_cast<double>(most), 1.0,
                    static_cast<double>(std::max<size_t>(1, by_node_.size())));
}

}  // namespace perfd
