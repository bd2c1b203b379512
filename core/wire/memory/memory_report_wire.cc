// Of a report.
#include <utility>

#include "core/base/status_macros.h"
#include "core/wire/check/check.h"
#include "core/wire/memory/memory_wire.h"

namespace perfd::wire {
namespace {

v1::BeyondShare ToProto(const BeyondShare& share) {
  v1::BeyondShare out;
  out.set_why_not(WireEnum<v1::NoShare>(share.why_not));
  out.set_share(share.share);
  out.set_low(share.interval.low);
  out.set_high(share.interval.high);
  out.set_samples(share.samples);
  out.set_untold(share.untold);
  out.set_without_latency(share.without_latency);
  return out;
}

absl::StatusOr<BeyondShare> Read(const v1::BeyondShare& from) {
  BeyondShare out;
  ASSIGN_OR_RETURN(out.why_not,
                   ModelEnum(from.why_not(), NoShare::kNoLatency, "memory.beyond.why_not"));
  for (const double ratio : {from.share(), from.low(), from.high()})
    RETURN_IF_ERROR(CheckRatio(ratio, "memory.beyond"));
  out.share = from.share();
  out.interval = {from.low(), from.high()};
  out.samples = from.samples();
  out.untold = from.untold();
  out.without_latency = from.without_latency();
  return out;
}

v1::MemoryFigures ToProto(const MemoryFigures& figures) {
  v1::MemoryFigures out;
  *out.mutable_profile() = wire::ToProto(figures.profile);
  for (const BeyondShare& share : figures.beyond) *out.add_beyond() = ToProto(share);
  return out;
}

absl::StatusOr<MemoryFigures> Read(const v1::MemoryFigures& from) {
  // None: a report without memory.
  if (from.beyond_size() != 0 && from.beyond_size() != static_cast<int>(kMemoryBorders))
    return absl::InvalidArgumentError("memory.beyond: not as many as there are borders");
  MemoryFigures out;
  ASSIGN_OR_RETURN(out.profile, FromProto(from.profile(), SumsOf::kProfile));
  for (int i = 0; i < from.beyond_size(); ++i) {
    ASSIGN_OR_RETURN(out.beyond[static_cast<size_t>(i)], Read(from.beyond(i)));
  }
  return out;
}

v1::MemoryPlace ToProto(const MemoryPlace& place) {
  v1::MemoryPlace out;
  out.set_id(CleanText(place.id));
  out.set_function(CleanText(place.function));
  out.set_file(CleanText(place.file));
  out.set_first_line(place.first_line);
  out.set_last_line(place.last_line);
  out.set_loop(place.loop);
  out.set_references_left_out(place.references_left_out);
  out.set_ranks_left_out(place.ranks_left_out);
  *out.mutable_figures() = ToProto(place.figures);
  for (const MemoryReference& reference : place.references) {
    v1::MemoryReference* to = out.add_references();
    to->set_instruction(reference.instruction.value());
    *to->mutable_figures() = ToProto(reference.figures);
  }
  for (const RankMemory& rank : place.ranks) *out.add_ranks() = wire::ToProto(rank);
  return out;
}

absl::StatusOr<MemoryPlace> Read(const v1::MemoryPlace& from) {
  RETURN_IF_ERROR(CheckText(from.id(), "memory.places.id"));
  RETURN_IF_ERROR(CheckText(from.function(), "memory.places.function"));
  RETURN_IF_ERROR(CheckText(from.file(), "memory.places.file"));
  RETURN_IF_ERROR(CheckRange(from.first_line(), 0, INT32_MAX, "memory.places.first_line"));
  RETURN_IF_ERROR(CheckRange(from.last_line(), 0, INT32_MAX, "memory.places.last_line"));
  RETURN_IF_ERROR(CheckCount(from.references_size(), kMaxMemoryRows, "memory.places.references"));
  RETURN_IF_ERROR(CheckCount(from.ranks_size(), kMaxReportRanks, "memory.places.ranks"));
  MemoryPlace out;
  out.id = from.id();
  out.function = from.function();
  out.file = from.file();
  out.first_line = from.first_line();
  out.last_line = from.last_line();
  out.loop = from.loop();
  out.references_left_out = from.references_left_out();
  out.ranks_left_out = from.ranks_left_out();
  ASSIGN_OR_RETURN(out.figures, Read(from.figures()));
  for (const v1::MemoryReference& reference : from.references()) {
    ASSIGN_OR_RETURN(MemoryFigures figures, Read(reference.figures()));
    out.references.push_back({reference.instruction(), std::move(figures)});
  }
  for (const v1::RankMemory& rank : from.ranks()) {
    ASSIGN_OR_RETURN(RankMemory read, FromProto(rank));
    out.ranks.push_back(std::move(read));
  }
  return out;
}

}  // namespace

v1::MemoryReport ToProto(const MemoryReport& report) {
  v1::MemoryReport out;
  *out.mutable_events() = ToProto(report.events);
  *out.mutable_job() = ToProto(report.job);
  for (const MemoryPlace& place : report.places) *out.add_places() = ToProto(place);
  out.set_places_left_out(report.places_left_out);
  *out.mutable_lost() = wire::ToProto(report.lost);
  return out;
}

absl::StatusOr<MemoryReport> FromProto(const v1::MemoryReport& from) {
  RETURN_IF_ERROR(CheckCount(from.places_size(), kMaxReportRows, "memory.places"));
  MemoryReport out;
  ASSIGN_OR_RETURN(out.events, FromProto(from.events()));
  ASSIGN_OR_RETURN(out.job, Read(from.job()));
  for (const v1::MemoryPlace& place : from.places()) {
    ASSIGN_OR_RETURN(MemoryPlace read, Read(place));
    out.places.push_back(std::move(read));
  }
  out.places_left_out = from.places_left_out();
  out.lost = FromProto(from.lost());
  return out;
}

}  // namespace perfd::wire
