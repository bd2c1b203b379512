#include "daemon/limits/held_ranks.h"

#include <utility>

#include "core/base/status_macros.h"

namespace perfd::daemon {
namespace {

absl::Status Grow(Limit limit, int64_t wanted, int64_t* had, const Requester& who, Limits& limits,
                  Share& share) {
  if (wanted <= *had) return absl::OkStatus();
  ASSIGN_OR_RETURN(Share more, limits.Acquire(limit, who, wanted - *had));
  share.Add(std::move(more));
  *had = wanted;
  return absl::OkStatus();
}

}  // namespace

absl::Status HeldRanks::Update(const NodeProgress& node, const Requester& who, Limits& limits) {
  if (refused_) return absl::OkStatus();
  Count& count = nodes_[node.node];
  absl::Status grown = Grow(Limit::kRanksPerUser, node.ranks, &count.ranks, who, limits, ranks_);
  if (grown.ok())
    grown = Grow(Limit::kThreadsPerUser, node.threads, &count.threads, who, limits, threads_);
  refused_ = !grown.ok();
  return grown;
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
