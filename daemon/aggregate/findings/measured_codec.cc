#include "daemon/aggregate/findings/measured_codec.h"

#include <utility>

#include "core/base/status_macros.h"
#include "core/wire/check/check.h"
#include "core/wire/lease_wire.h"
#include "core/wire/variant_wire.h"

namespace perfd::daemon {

namespace {

v1::AggregatePauses PausesToProto(const std::string& node, const PauseSet& set) {
  v1::AggregatePauses out;
  out.set_node(wire::CleanText(node));
  for (const PauseSpan& span : set.spans()) {
    out.add_begin_ns(span.begin_ns);
    out.add_end_ns(span.end_ns);
  }
  out.set_overflow_ns(set.overflow_ns());
  return out;
}

template <typename Times>
absl::Status ReadSpans(const std::string& node, const Times& begins, const Times& ends,
                       int64_t overflow_ns, JobPauses& out) {
  if (begins.size() != ends.size())
    return absl::DataLossError("pauses: columns of different length");
  for (int i = 0; i < begins.size(); ++i) {
    RETURN_IF_ERROR(wire::CheckRange(begins.Get(i), 0, INT64_MAX, "pauses"));
    out.Add(node, begins.Get(i), ends.Get(i));
  }
  RETURN_IF_ERROR(wire::CheckRange(overflow_ns, 0, kMostCost, "pauses.overflow_ns"));
  if (overflow_ns > 0) out.AddOverflow(node, overflow_ns);
  return absl::OkStatus();
}

absl::Status ReadPauses(const v1::AggregateMeasured& from, JobPauses& out) {
  // Of a daemon that did not tell nodes apart.
  RETURN_IF_ERROR(
      ReadSpans("", from.pause_begin_ns(), from.pause_end_ns(), from.pause_overflow_ns(), out));
  for (const v1::AggregatePauses& node : from.pauses()) {
    RETURN_IF_ERROR(
        ReadSpans(node.node(), node.begin_ns(), node.end_ns(), node.overflow_ns(), out));
  }
  if (from.leased_nodes_size() != from.leased_size())
    return absl::DataLossError("leased: columns of different length");
  for (int i = 0; i < from.leased_size(); ++i) {
    ASSIGN_OR_RETURN(const LeasedPause pause, wire::FromProto(from.leased(i)));
    out.AddLeased(from.leased_nodes(i), pause);
  }
  out.AddLost(from.leased_lost());
  return absl::OkStatus();
}

}  // namespace

v1::AggregateMeasured ToProto(const MeasuredState& state) {
  v1::AggregateMeasured out;
  for (const LoopMeasurement& loop : state.loops) *out.add_loops() = wire::ToProto(loop);
  for (const LoopListing& listing : state.listings) {
    v1::AggregateListing* to = out.add_listings();
    to->set_loop_id(wire::CleanText(listing.loop_id));
    *to->mutable_listing() = wire::ToProto(listing.listing);
  }
  for (const auto& [node, set] : state.pauses.nodes()) *out.add_pauses() = PausesToProto(node, set);
  for (const auto& [key, pause] : state.pauses.leased()) {
    out.add_leased_nodes(wire::CleanText(key.second));
    *out.add_leased() = wire::ToProto(pause);
  }
  out.set_leased_lost(state.pauses.lost());
  out.set_audited_ns(state.audited_ns);
  out.set_audited(state.audited);
  out.set_lost(state.lost);
  return out;
}

absl::StatusOr<MeasuredState> FromProto(const v1::AggregateMeasured& from) {
  MeasuredState state;
  for (const v1::LoopMeasurement& loop : from.loops()) {
    ASSIGN_OR_RETURN(LoopMeasurement read, wire::FromProto(loop));
    state.loops.push_back(std::move(read));
  }
  for (const v1::AggregateListing& listing : from.listings()) {
    ASSIGN_OR_RETURN(VariantListing read, wire::FromProto(listing.listing()));
    state.listings.push_back({listing.loop_id(), std::move(read)});
  }
  RETURN_IF_ERROR(ReadPauses(from, state.pauses));
  RETURN_IF_ERROR(wire::CheckRange(from.audited_ns(), 0, kMostCost, "audited_ns"));
  state.audited_ns = from.audited_ns();
  state.audited = from.audited();
  state.lost = from.lost();
  return state;
}

}  // namespace perfd::daemon
