// Which loops a profile orders when the program goes from phase to phase, and when it knows enough of them.
#include <algorithm>
#include <utility>

#include "daemon/control/profile_session.h"

namespace perfd::daemon {
namespace {

// A loop that is taken up later than this before the end would be installed for nothing.
constexpr int64_t kLeastLeftNs = 10 * kNsPerSecond;

}  // namespace

bool ProfileSession::WantsHeat(Moment now) const {
  const ProfileSpec& spec = status_.spec;
  if (outcome_.has_value() || cancelled_ns_.has_value() || spec.dry_run || !choice_.IsDue(now))
    return false;
  if (KnowsEnough(status_.course.end)) return false;
  if (spec.variants.set.empty())
    return spec.until_known && status_.state == ProfileState::kSampling;
  return choice_.ordered() && status_.state == ProfileState::kInjecting &&
         MostLeftNs(now) > kLeastLeftNs;
}

Decisions ProfileSession::Heat(const HeatNow& heat, Moment now) {
  if (!WantsHeat(now)) return {};
  if (!choice_.ordered()) {
    choice_.Looked(now);
    known_.KnowShares(heat.shares, MostLeftNs(now), now.monotonic_ns);
    status_.course.loops = known_.progress();
    return {};
  }
  const bool others = choice_.ChooseAgain(heat.loops, status_.spec.hotspots, now);
  if (others) known_.ChangeLoops(now.monotonic_ns);
  known_.Know(choice_.KnowledgeOf(heat.loops), MostLeftNs(now), now.monotonic_ns);
  status_.course.loops = known_.progress();
  return others ? OrderAll() : Decisions();
}

void ProfileSession::CheckKnown(Moment now, Decisions& out) {
  if (!status_.spec.until_known || status_.spec.dry_run || cancelled_ns_.has_value()) return;
  if (status_.course.end != EndReason::kNone) return;
  const bool measuring = std::any_of(nodes_.begin(), nodes_.end(), [](const NodeSession& node) {
    return node.progress.windows > 0;
  });
  if (!measuring) return;
  known_.Begin(now.monotonic_ns);
  const EndReason end = known_.End(now.monotonic_ns);
  if (end == EndReason::kNone) return;
  // Of a node that is away, or whose ranks are to come yet, nobody knows.
  const bool all_told = std::none_of(nodes_.begin(), nodes_.end(), [&](const NodeSession& node) {
    return !node.Over() && !node.ended && (!node.connected || StillWaits(node, now));
  });
  if (end == EndReason::kKnown && !all_told) return;
  status_.course.end = end;
  dirty_ = true;
  for (Decision& decision : JobEnded("", now)) out.push_back(std::move(decision));
}

Decisions ProfileSession::OrderAll() const {
  Decisions out;
  for (const NodeSession& node : nodes_) {
    if (node.connected && !node.Over()) out.push_back(Order(node));
  }
  return out;
}

}  // namespace perfd::daemon
