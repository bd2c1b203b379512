// The canonical value of an aggregate, and a canonical value into the sums.
#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/base/status_macros.h"
#include "daemon/aggregate/profile_aggregate.h"

namespace perfd::daemon {
namespace {

// order[i]: index of the i-th smallest key.
template <typename Key>
std::vector<uint32_t> SortedOrder(const std::vector<Key>& keys) {
  std::vector<uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  return order;
}

std::vector<uint32_t> Inverse(const std::vector<uint32_t>& order) {
  std::vector<uint32_t> inverse(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) inverse[order[i]] = i;
  return inverse;
}

}  // namespace

AggregateState ProfileAggregate::State() const {
  AggregateState state;
  std::vector<std::string> location_keys;
  for (const LocationTotals& location : locations_)
    location_keys.push_back(LocationKey(location.location));
  const std::vector<uint32_t> location_order = SortedOrder(location_keys);
  for (uint32_t i : location_order) state.locations.push_back(locations_[i]);

  std::vector<ThreadKey> thread_keys;
  for (size_t i = 0; i < threads_.size(); ++i) thread_keys.push_back(thread(i).key);
  const std::vector<uint32_t> thread_order = SortedOrder(thread_keys);
  for (uint32_t i : thread_order) state.threads.push_back(thread(i));

  const std::vector<uint32_t> new_location = Inverse(location_order);
  const std::vector<uint32_t> new_thread = Inverse(thread_order);
  state.cells.reserve(cells_.size());
  ForEachCell([&](uint32_t thread, uint32_t location, const Counts& counts) {
    state.cells.push_back({new_thread[thread], new_location[location], counts});
  });
  std::sort(state.cells.begin(), state.cells.end(), [](const Cell& a, const Cell& b) {
    return std::tie(a.thread, a.location) < std::tie(b.thread, b.location);
  });

  state.ranks = ranks();
  std::sort(state.ranks.begin(), state.ranks.end(), [](const RankTotals& a, const RankTotals& b) {
    return std::tie(a.info.node, a.info.rank, a.info.pid) <
           std::tie(b.info.node, b.info.rank, b.info.pid);
  });
  state.nodes = nodes_;
  std::sort(state.nodes.begin(), state.nodes.end(),
            [](const NodeTotals& a, const NodeTotals& b) { return a.node < b.node; });
  state.paths = paths_.State(new_location);
  state.totals = totals_;
  state.findings = findings_.State(new_location);
  return state;
}

void ProfileAggregate::Absorb(const AggregateState& state) {
  for (const NodeTotals& node : state.nodes) nodes_[InternNode(node.node)] += node;
  for (const RankTotals& rank : state.ranks) AddRank(rank, InternNode(rank.info.node));

  std::vector<uint32_t> location;
  for (const LocationTotals& from : state.locations) {
    location.push_back(InternLocation(from.location));
    if (IsFolded(from.location, locations_[location.back()].location))
      totals_.lost.location_samples += from.counts.samples;
    LocationTotals& to = locations_[location.back()];
    to.counts += from.counts;
    to.yy += from.yy;
    to.xy += from.xy;
    to.ww += from.ww;
    to.wall += from.wall;
    to.Span(from.first_unix_ns, from.last_unix_ns);
  }
  std::vector<uint32_t> thread;
  for (const ThreadTotals& from : state.threads) {
    const ThreadKey& key = from.key;
    const ShortThread short_key{InternNode(key.node), key.rank, key.pid, key.tid};
    thread.push_back(InternThread(short_key));
    if (!(threads_[thread.back()].key == short_key))
      totals_.lost.thread_samples += from.counts.samples;
    threads_[thread.back()].counts += from.counts;
  }
  for (const Cell& cell : state.cells)
    AddCell(thread[cell.thread], location[cell.location], cell.counts);
  totals_.lost.stack_samples += paths_.AbsorbStacks(state.paths);
  for (const WindowCall& call : state.paths.calls) {
    const CodeLocation* loop =
        call.loop.has_value() ? &state.locations[*call.loop].location : nullptr;
    AddCall(call, state.locations[call.location].location, loop, location);
  }
  totals_ += state.totals;
  findings_.Absorb(state.findings, location);
}

absl::StatusOr<ProfileAggregate> ProfileAggregate::FromState(const AggregateState& state,
                                                             AggregateLimits limits) {
  RETURN_IF_ERROR(CheckState(state));
  ProfileAggregate aggregate(limits);
  aggregate.Absorb(state);
  return aggregate;
}

}  // namespace perfd::daemon
