#include "daemon/aggregate/measured_codec.h"

#include <utility>

#include "core/base/status_macros.h"
#include "core/wire/check.h"
#include "core/wire/variant_wire.h"

namespace perfd {

v1::AggregateMeasured ToProto(const MeasuredState& state) {
  v1::AggregateMeasured out;
  for (const LoopMeasurement& loop : state.loops) *out.add_loops() = wire::ToProto(loop);
  for (const LoopListing& listing : state.listings) {
    v1::AggregateListing* to = out.add_listings();
    to->set_loop_id(wire::CleanText(listing.loop_id));
    *to->mutable_listing() = wire::ToProto(listing.listing);
  }
  for (const PauseSpan& span : state.pauses.spans()) {
    out.add_pause_begin_ns(span.begin_ns);
    out.add_pause_end_ns(span.end_ns);
  }
  out.set_pause_overflow_ns(state.pauses.overflow_ns());
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
  if (from.pause_begin_ns_size() != from.pause_end_ns_size())
    return absl::DataLossError("pauses: columns of different length");
  for (int i = 0; i < from.pause_begin_ns_size(); ++i) {
    RETURN_IF_ERROR(wire::CheckRange(from.pause_begin_ns(i), 0, INT64_MAX, "pauses"));
    state.pauses.Add(from.pause_begin_ns(i), from.pause_end_ns(i));
  }
  RETURN_IF_ERROR(wire::CheckRange(from.pause_overflow_ns(), 0, kMostCost, "pause_overflow_ns"));
  RETURN_IF_ERROR(wire::CheckRange(from.audited_ns(), 0, kMostCost, "audited_ns"));
  state.pauses.AddOverflow(from.pause_overflow_ns());
  state.audited_ns = from.audited_ns();
  state.audited = from.audited();
  state.lost = from.lost();
  return state;
}

}  // namespace perfd
