// Which loops a profile orders when the program goes from phase to phase.
#include <algorithm>
#include <map>

#include "daemon/control/profile_session.h"

namespace perfd::daemon {
namespace {

constexpr int64_t kHeatNs = 2 * kNsPerSecond;  // between two choices
// A loop that is taken up later than this before the end would be installed for nothing.
constexpr int64_t kLeastLeftNs = 10 * kNsPerSecond;

}  // namespace

// A daemon that was restarted goes on with revisions that agents take for newer.
void ProfileSession::BeginPhases(Moment now) {
  order_revision_ = static_cast<uint64_t>(std::max<int64_t>(1, now.unix_ns));
  heat_ns_ = now.monotonic_ns + kHeatNs;
  phases_.clear();
  for (const MeasureLoop& loop : hot_loops_) phases_.push_back({.id = loop.loop_id});
}

bool ProfileSession::WantsHeat(Moment now) const {
  if (order_revision_ == 0 || status_.spec.dry_run || status_.state != ProfileState::kInjecting)
    return false;
  if (outcome_.has_value() || cancelled_ns_.has_value() || now.monotonic_ns < heat_ns_)
    return false;
  return now.monotonic_ns + kLeastLeftNs < first_sample_ns_ + SpanNs();
}

Decisions ProfileSession::Heat(const std::vector<HeatedLoop>& loops, Moment now) {
  if (!WantsHeat(now)) return {};
  heat_ns_ = now.monotonic_ns + kHeatNs;
  std::vector<LoopHeat> heat;
  std::map<std::string, const HeatedLoop*> by_id;
  for (const HeatedLoop& loop : loops) {
    heat.push_back(loop.heat);
    by_id[loop.heat.id] = &loop;
  }
  const HotspotSpec& spec = status_.spec.hotspots;
  PhaseStep step =
      NextPhase(heat, phases_, {.coverage_ratio = spec.coverage_ratio, .max_loops = spec.max_loops},
                now.monotonic_ns);
  phases_ = std::move(step.loops);
  if (step.taken.empty() && step.given_up.empty()) return {};
  std::vector<const HeatedLoop*> active;
  for (const PhaseLoop& phase : phases_) {
    const auto it = by_id.find(phase.id);
    if (phase.active && it != by_id.end()) active.push_back(it->second);
  }
  std::stable_sort(active.begin(), active.end(), [](const HeatedLoop* a, const HeatedLoop* b) {
    return a->heat.recent_ns > b->heat.recent_ns;
  });
  hot_loops_.clear();
  for (const HeatedLoop* loop : active) hot_loops_.push_back(loop->loop);
  order_revision_ =
      std::max(order_revision_ + 1, static_cast<uint64_t>(std::max<int64_t>(1, now.unix_ns)));
  return OrderAll();
}

Decisions ProfileSession::OrderAll() const {
  Decisions out;
  for (const NodeSession& node : nodes_) {
    if (node.connected && !node.Over()) out.push_back(Order(node));
  }
  return out;
}

}  // namespace perfd::daemon
