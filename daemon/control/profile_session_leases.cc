// The pause lease of a profile: which nodes hold one, what an order may spend, how the pauses have turned out.
#include <algorithm>
#include <cmath>

#include "core/analysis/lease_windows.h"
#include "daemon/control/profile_session.h"

namespace perfd::daemon {
namespace {

constexpr int64_t kReckonNs = 2 * kNsPerSecond;
constexpr int64_t kComingBackNs = 10 * kNsPerSecond;
constexpr double kWorthAnUpdate = 0.05;  // of the charge that was told

bool ClockTrusted(const std::optional<ClockReading>& clock, int64_t job_ns) {
  return clock.has_value() && Trusted(*clock, HereTime(*clock, job_ns));
}

}  // namespace

void ProfileSession::Know(const AgentFacts& facts) {
  NodeSession* node = FindNode(facts.node);
  if (node == nullptr) return;
  node->keeps_leases = facts.abilities.pause_leases;
  node->clock = facts.clock;
}

// After a restart of the daemon agents come back one by one, and their clocks are read then: an order before that would take
// their leases away for good.
bool ProfileSession::KnowsItsNodes(Moment now) const {
  if (!restored_ns_.has_value() || now.monotonic_ns - *restored_ns_ >= kComingBackNs) return true;
  return std::none_of(nodes_.begin(), nodes_.end(), [](const NodeSession& node) {
    if (node.progress.ranks == 0 || node.Over()) return false;
    return !node.connected || (node.keeps_leases && !node.clock.has_value());
  });
}

// With the first order, for good: a node that is given a lease later would begin with a budget that others have.
void ProfileSession::GiveLeases(Moment now) {
  sharers_ = leases_ = 0;
  for (NodeSession& node : nodes_) {
    if (node.progress.ranks == 0) continue;
    ++sharers_;
    node.leased =
        !status_.spec.dry_run && node.keeps_leases && ClockTrusted(node.clock, now.job_ns);
    if (node.leased) ++leases_;
  }
  if (leases_ > 1) return;
  for (NodeSession& node : nodes_) node.leased = false;
  leases_ = 0;
}

// Nodes without a lease pause their ranks on their own, so in the worst case their pauses add up: each gets its part of the
// budget. Those with one have their parts together, and may each use all of them.
void ProfileSession::Share(const NodeSession& node, MeasureOrder& order) const {
  const auto at_work = std::count_if(nodes_.begin(), nodes_.end(), [](const NodeSession& other) {
    return other.progress.ranks > 0;
  });
  const double parts =
      static_cast<double>(std::max({int64_t{1}, int64_t{at_work}, int64_t{sharers_}}));
  order.budget.overhead_ratio /= parts;
  if (!node.leased || !node.keeps_leases) return;
  order.lease = PlanLease(status_.spec.budget, leases_);
  order.lease->clock = node.clock.value_or(ClockReading{});
  order.budget.overhead_ratio *= static_cast<double>(leases_);
}

void ProfileSession::RecordLeases(const StoredWindow& window) {
  const NodeSession* node = FindNode(window.node);
  if (node == nullptr || !node->leased) return;
  for (const LeasedPause& pause : window.pauses) ledger_.Add(window.node, pause);
  paused_ |= !window.pauses.empty();
}

void ProfileSession::ReportCharge(Moment now, Decisions& out) {
  if (!paused_ || now.monotonic_ns - charge_ns_ < kReckonNs) return;
  paused_ = false;
  charge_ns_ = now.monotonic_ns;
  const double charge = ledger_.Charge();
  if (charge <= 0 || std::abs(charge - charge_) < kWorthAnUpdate * charge_) return;
  charge_ = charge;
  for (const NodeSession& node : nodes_) {
    if (node.leased && node.connected && !node.Over())
      out.push_back(ChargeNode{node.progress.node, status_.id, charge});
  }
}

}  // namespace perfd::daemon
