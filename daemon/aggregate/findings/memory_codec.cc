#include "daemon/aggregate/findings/memory_codec.h"

#include <utility>

#include "core/base/status_macros.h"
#include "core/wire/memory/memory_wire.h"

namespace perfd::daemon {
namespace {

using wire::SumsOf;

void Fill(const MemorySums& sums, v1::MemorySums& out) {
  *out.mutable_profile() = wire::ToProto(sums.profile);
  *out.mutable_times() = wire::ToProto(sums.times);
  for (const BorderSquares& squares : sums.squares) {
    v1::BorderSquares* to = out.add_squares();
    to->set_clusters(squares.clusters);
    *to->mutable_xx() = wire::ToProto(squares.xx);
    *to->mutable_xy() = wire::ToProto(squares.xy);
    *to->mutable_yy() = wire::ToProto(squares.yy);
  }
}

absl::StatusOr<MemorySums> Read(const v1::MemorySums& from) {
  if (from.squares_size() != 0 && from.squares_size() != static_cast<int>(kMemoryBorders))
    return absl::InvalidArgumentError("memory.squares: not as many as there are borders");
  MemorySums out;
  ASSIGN_OR_RETURN(out.profile, wire::FromProto(from.profile(), SumsOf::kProfile));
  ASSIGN_OR_RETURN(out.times, wire::FromProto(from.times(), SumsOf::kProfile));
  for (int i = 0; i < from.squares_size(); ++i) {
    const v1::BorderSquares& squares = from.squares(i);
    out.squares[static_cast<size_t>(i)] = {squares.clusters(), wire::FromProto(squares.xx()),
                                           wire::FromProto(squares.xy()),
                                           wire::FromProto(squares.yy())};
  }
  return out;
}

void Fill(const PlaceMemory& of, v1::MemorySums& out) {
  out.set_location(of.place);
  out.set_instruction(of.instruction.value());
  Fill(of.sums, out);
}

absl::Status CheckPlace(uint32_t place, size_t place_count) {
  if (place < place_count) return absl::OkStatus();
  return absl::InvalidArgumentError("memory: outside the list of places");
}

absl::StatusOr<PlaceMemory> ReadPlace(const v1::MemorySums& from, size_t place_count) {
  RETURN_IF_ERROR(CheckPlace(from.location(), place_count));
  ASSIGN_OR_RETURN(MemorySums sums, Read(from));
  return PlaceMemory{from.location(), from.instruction(), std::move(sums)};
}

}  // namespace

v1::AggregateMemory ToProto(const MemoryState& state) {
  v1::AggregateMemory out;
  *out.mutable_events() = wire::ToProto(state.events);
  Fill(state.job, *out.mutable_job());
  for (const PlaceMemory& place : state.places) Fill(place, *out.add_places());
  for (const PlaceMemory& reference : state.references) Fill(reference, *out.add_references());
  for (const PlaceRankMemory& rank : state.ranks) {
    v1::MemoryRank* to = out.add_ranks();
    to->set_location(rank.place);
    *to->mutable_memory() = wire::ToProto(rank.memory);
  }
  *out.mutable_lost() = wire::ToProto(state.lost);
  return out;
}

absl::StatusOr<MemoryState> FromProto(const v1::AggregateMemory& from, size_t place_count) {
  MemoryState out;
  ASSIGN_OR_RETURN(out.events, wire::FromProto(from.events()));
  ASSIGN_OR_RETURN(out.job, Read(from.job()));
  for (const v1::MemorySums& place : from.places()) {
    ASSIGN_OR_RETURN(PlaceMemory read, ReadPlace(place, place_count));
    out.places.push_back(std::move(read));
  }
  for (const v1::MemorySums& reference : from.references()) {
    ASSIGN_OR_RETURN(PlaceMemory read, ReadPlace(reference, place_count));
    out.references.push_back(std::move(read));
  }
  for (const v1::MemoryRank& rank : from.ranks()) {
    RETURN_IF_ERROR(CheckPlace(rank.location(), place_count));
    ASSIGN_OR_RETURN(RankMemory memory, wire::FromProto(rank.memory()));
    out.ranks.push_back({rank.location(), std::move(memory)});
  }
  out.lost = wire::FromProto(from.lost());
  return out;
}

}  // namespace perfd::daemon
