#include "daemon/limits/held_ranks.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"

namespace perfd::daemon {
namespace {

// Empty: it has them already.
absl::StatusOr<Share> More(Limit limit, int64_t wanted, int64_t has, const Requester& who,
                           Limits& limits) {
  if (wanted <= has) return Share();
  return limits.Acquire(limit, who, wanted - has);
}

}  // namespace

absl::Status HeldRanks::Update(const NodeProgress& node, const Requester& who, Limits& limits) {
  if (refused_) return absl::OkStatus();
  Count& count = nodes_[node.node];
  auto ranks = More(Limit::kRanksPerUser, node.ranks, count.ranks, who, limits);
  refused_ = !ranks.ok();
  if (refused_) return ranks.status();
  auto threads = More(Limit::kThreadsPerUser, node.threads, count.threads, who, limits);
  refused_ = !threads.ok();
  if (refused_) return threads.status();
  ranks_.Add(*std::move(ranks));
  threads_.Add(*std::move(threads));
  count.ranks = std::max<int64_t>(count.ranks, node.ranks);
  count.threads = std::max<int64_t>(count.threads, node.threads);
  return absl::OkStatus();
}

void HeldRanks::Restore(const ProfileStatus& status, Limits& limits) {
  Count all;
  for (const NodeProgress& node : status.nodes) {
    nodes_[node.node] = {node.ranks, node.threads};
    all.ranks += node.ranks;
    all.threads += node.threads;
  }
  const uint32_t uid = status.requester.uid;
  if (all.ranks > 0) ranks_ = limits.Hold(Limit::kRanksPerUser, uid, all.ranks);
  if (all.threads > 0) threads_ = limits.Hold(Limit::kThreadsPerUser, uid, all.threads);
}

}  // namespace perfd::daemon
