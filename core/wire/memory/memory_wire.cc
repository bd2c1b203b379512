#include "core/wire/memory/memory_wire.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/status_macros.h"
#include "core/wire/check/check.h"

namespace perfd::wire {
namespace {

uint64_t MostSamples(SumsOf of) {
  return of == SumsOf::kWindow ? kMaxSampleTotal : UINT64_MAX;
}

uint64_t MostWeight(SumsOf of) {
  return of == SumsOf::kWindow ? kMaxTotal : UINT64_MAX;
}

v1::AccessCount ToProto(const AccessCount& count) {
  v1::AccessCount out;
  out.set_samples(count.samples);
  out.set_weight(count.weight);
  return out;
}

absl::StatusOr<AccessCount> Read(const v1::AccessCount& from, SumsOf of, absl::string_view field) {
  RETURN_IF_ERROR(CheckTotal(from.samples(), field, MostSamples(of)));
  RETURN_IF_ERROR(CheckTotal(from.weight(), field, MostWeight(of)));
  return AccessCount{from.samples(), from.weight()};
}

template <size_t N>
void Fill(const std::array<AccessCount, N>& counts, v1::AccessCounts& out) {
  for (size_t i = 0; i < N; ++i) {
    if (counts[i].samples == 0) continue;
    out.add_index(static_cast<uint32_t>(i));
    out.add_samples(counts[i].samples);
    out.add_weight(counts[i].weight);
  }
}

template <size_t N>
absl::Status Read(const v1::AccessCounts& from, SumsOf of, absl::string_view field,
                  std::array<AccessCount, N>& out) {
  if (from.samples_size() != from.index_size() || from.weight_size() != from.index_size())
    return absl::InvalidArgumentError(absl::StrCat(field, ": columns of different length"));
  int64_t last = -1;
  for (int i = 0; i < from.index_size(); ++i) {
    const int64_t index = from.index(i);
    RETURN_IF_ERROR(CheckRange(index, last + 1, static_cast<int64_t>(N) - 1, field));
    last = index;
    if (from.samples(i) == 0) return absl::InvalidArgumentError(absl::StrCat(field, ": zero"));
    RETURN_IF_ERROR(CheckTotal(from.samples(i), field, MostSamples(of)));
    RETURN_IF_ERROR(CheckTotal(from.weight(i), field, MostWeight(of)));
    out[static_cast<size_t>(index)] = {from.samples(i), from.weight(i)};
  }
  return absl::OkStatus();
}

void Fill(const LatencyHistogram& latency, v1::AccessCounts& out) {
  for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i) {
    if (latency.at(i) == 0) continue;
    out.add_index(static_cast<uint32_t>(i));
    out.add_samples(latency.at(i));
    out.add_weight(0);
  }
}

absl::StatusOr<LatencyHistogram> ReadLatency(const v1::AccessCounts& from, SumsOf of) {
  std::array<AccessCount, LatencyHistogram::kBuckets> buckets{};
  RETURN_IF_ERROR(Read(from, of, "memory.latency", buckets));
  LatencyHistogram out;
  for (size_t i = 0; i < buckets.size(); ++i)
    out.Add(LatencyHistogram::RangeOf(i).low, buckets[i].samples);
  return out;
}

v1::BorderTime ToProto(const BorderTime& time) {
  v1::BorderTime out;
  out.set_told(time.told);
  out.set_untold(time.untold);
  out.set_told_cycles(time.told_cycles);
  out.set_beyond_cycles(time.beyond_cycles);
  out.set_untold_cycles(time.untold_cycles);
  *out.mutable_told_squares() = wire::ToProto(time.told_squares);
  *out.mutable_beyond_squares() = wire::ToProto(time.beyond_squares);
  return out;
}

// Squares beyond what the cycles allow would overflow the sums of others.
absl::Status CheckSquares(absl::uint128 squares, uint64_t cycles) {
  if (squares <= absl::uint128(cycles) * cycles) return absl::OkStatus();
  return absl::InvalidArgumentError("memory.times: squares of more than there is");
}

absl::StatusOr<BorderTime> Read(const v1::BorderTime& from, SumsOf of) {
  const uint64_t most = of == SumsOf::kWindow ? kMostWindowCycles : UINT64_MAX;
  BorderTime out{.told = from.told(),
                 .untold = from.untold(),
                 .told_cycles = from.told_cycles(),
                 .beyond_cycles = from.beyond_cycles(),
                 .untold_cycles = from.untold_cycles(),
                 .told_squares = FromProto(from.told_squares()),
                 .beyond_squares = FromProto(from.beyond_squares())};
  for (const uint64_t samples : {out.told, out.untold})
    RETURN_IF_ERROR(CheckTotal(samples, "memory.times", MostSamples(of)));
  for (const uint64_t cycles : {out.told_cycles, out.untold_cycles})
    RETURN_IF_ERROR(CheckTotal(cycles, "memory.times", most));
  RETURN_IF_ERROR(CheckTotal(out.beyond_cycles, "memory.times.beyond_cycles", out.told_cycles));
  RETURN_IF_ERROR(CheckSquares(out.told_squares, out.told_cycles));
  RETURN_IF_ERROR(CheckSquares(out.beyond_squares, out.beyond_cycles));
  return out;
}

absl::StatusOr<MemoryRow> Read(const v1::MemoryRow& from, size_t location_count) {
  RETURN_IF_ERROR(CheckRange(from.rank(), 0, INT32_MAX, "memory.rows.rank"));
  RETURN_IF_ERROR(CheckRange(from.pid(), 0, INT32_MAX, "memory.rows.pid"));
  if (from.location() >= location_count)
    return absl::InvalidArgumentError("memory.rows.location: outside the dictionary");
  MemoryRow out;
  out.rank = from.rank();
  out.pid = from.pid();
  out.location = from.location();
  out.instruction = from.instruction();
  ASSIGN_OR_RETURN(out.profile, FromProto(from.profile(), SumsOf::kWindow));
  ASSIGN_OR_RETURN(out.times, FromProto(from.times(), SumsOf::kWindow));
  if (out.profile.all.samples == 0) return absl::InvalidArgumentError("memory.rows: no samples");
  return out;
}

}  // namespace

v1::WideSum ToProto(absl::uint128 sum) {
  v1::WideSum out;
  out.set_high(absl::Uint128High64(sum));
  out.set_low(absl::Uint128Low64(sum));
  return out;
}

absl::uint128 FromProto(const v1::WideSum& sum) {
  return absl::MakeUint128(sum.high(), sum.low());
}

v1::MemoryProfile ToProto(const MemoryProfile& profile) {
  v1::MemoryProfile out;
  *out.mutable_all() = ToProto(profile.all);
  *out.mutable_kernel() = ToProto(profile.kernel);
  out.set_without_address(profile.without_address);
  out.set_without_latency(profile.without_latency);
  out.set_without_source(profile.without_source);
  Fill(profile.loads, *out.mutable_loads());
  Fill(profile.missed, *out.mutable_missed());
  Fill(profile.tlb, *out.mutable_tlb());
  *out.mutable_stores() = ToProto(profile.stores);
  *out.mutable_hit_modified() = ToProto(profile.hit_modified);
  *out.mutable_locked() = ToProto(profile.locked);
  Fill(profile.latency, *out.mutable_latency());
  return out;
}

absl::StatusOr<MemoryProfile> FromProto(const v1::MemoryProfile& from, SumsOf of) {
  MemoryProfile out;
  ASSIGN_OR_RETURN(out.all, Read(from.all(), of, "memory.all"));
  ASSIGN_OR_RETURN(out.kernel, Read(from.kernel(), of, "memory.kernel"));
  out.without_address = from.without_address();
  out.without_latency = from.without_latency();
  out.without_source = from.without_source();
  for (const uint64_t count : {out.without_address, out.without_latency, out.without_source})
    RETURN_IF_ERROR(CheckTotal(count, "memory.without", MostSamples(of)));
  RETURN_IF_ERROR(Read(from.loads(), of, "memory.loads", out.loads));
  RETURN_IF_ERROR(Read(from.missed(), of, "memory.missed", out.missed));
  RETURN_IF_ERROR(Read(from.tlb(), of, "memory.tlb", out.tlb));
  ASSIGN_OR_RETURN(out.stores, Read(from.stores(), of, "memory.stores"));
  ASSIGN_OR_RETURN(out.hit_modified, Read(from.hit_modified(), of, "memory.hit_modified"));
  ASSIGN_OR_RETURN(out.locked, Read(from.locked(), of, "memory.locked"));
  ASSIGN_OR_RETURN(out.latency, ReadLatency(from.latency(), of));
  return out;
}

v1::LoadTimes ToProto(const LoadTimes& times) {
  v1::LoadTimes out;
  for (const BorderTime& border : times.borders) *out.add_borders() = ToProto(border);
  out.set_without_latency(times.without_latency);
  return out;
}

absl::StatusOr<LoadTimes> FromProto(const v1::LoadTimes& from, SumsOf of) {
  // None: nothing is known of times.
  if (from.borders_size() != 0 && from.borders_size() != static_cast<int>(kMemoryBorders))
    return absl::InvalidArgumentError("memory.times.borders: not as many as there are");
  LoadTimes out;
  for (int i = 0; i < from.borders_size(); ++i) {
    ASSIGN_OR_RETURN(out.borders[static_cast<size_t>(i)], Read(from.borders(i), of));
  }
  out.without_latency = from.without_latency();
  RETURN_IF_ERROR(CheckTotal(out.without_latency, "memory.times", MostSamples(of)));
  return out;
}

v1::RankMemory ToProto(const RankMemory& rank) {
  v1::RankMemory out;
  out.set_node(CleanText(rank.node));
  out.set_rank(rank.rank);
  out.set_pid(rank.pid);
  *out.mutable_all() = ToProto(rank.all);
  *out.mutable_walks() = ToProto(rank.walks);
  out.set_told_cycles(rank.told_cycles);
  out.set_beyond_cycles(rank.beyond_cycles);
  out.set_untold_cycles(rank.untold_cycles);
  out.set_told(rank.told);
  out.set_untold(rank.untold);
  out.set_without_latency(rank.without_latency);
  return out;
}

v1::MemoryLost ToProto(const MemoryLost& lost) {
  v1::MemoryLost out;
  out.set_accesses(lost.accesses);
  out.set_without_place(lost.without_place);
  out.set_without_instruction(lost.without_instruction);
  out.set_without_rank(lost.without_rank);
  return out;
}

MemoryLost FromProto(const v1::MemoryLost& from) {
  return {from.accesses(), from.without_place(), from.without_instruction(), from.without_rank()};
}

absl::StatusOr<RankMemory> FromProto(const v1::RankMemory& from) {
  RETURN_IF_ERROR(CheckText(from.node(), "memory.ranks.node"));
  RETURN_IF_ERROR(CheckRange(from.rank(), 0, INT32_MAX, "memory.ranks.rank"));
  RETURN_IF_ERROR(CheckRange(from.pid(), 0, INT32_MAX, "memory.ranks.pid"));
  RankMemory out;
  out.node = from.node();
  out.rank = from.rank();
  out.pid = from.pid();
  ASSIGN_OR_RETURN(out.all, Read(from.all(), SumsOf::kProfile, "memory.ranks.all"));
  ASSIGN_OR_RETURN(out.walks, Read(from.walks(), SumsOf::kProfile, "memory.ranks.walks"));
  out.told_cycles = from.told_cycles();
  out.beyond_cycles = from.beyond_cycles();
  out.untold_cycles = from.untold_cycles();
  out.told = from.told();
  out.untold = from.untold();
  out.without_latency = from.without_latency();
  RETURN_IF_ERROR(CheckTotal(out.beyond_cycles, "memory.ranks.beyond_cycles", out.told_cycles));
  return out;
}

MemoryEventsProto ToProto(const std::vector<MemoryEvent>& events) {
  MemoryEventsProto out;
  for (const MemoryEvent& event : events) {
    v1::MemoryEvent* to = out.Add();
    to->set_name(CleanText(event.name));
    to->set_latency_threshold(event.latency_threshold);
  }
  return out;
}

absl::StatusOr<std::vector<MemoryEvent>> FromProto(const MemoryEventsProto& events) {
  RETURN_IF_ERROR(CheckCount(events.size(), kMaxMemoryEvents, "memory.events"));
  std::vector<MemoryEvent> out;
  for (const v1::MemoryEvent& event : events) {
    RETURN_IF_ERROR(CheckText(event.name(), "memory.events.name"));
    out.push_back({event.name(), event.latency_threshold()});
  }
  return out;
}

v1::WindowMemory ToProto(const WindowMemory& memory) {
  v1::WindowMemory out;
  *out.mutable_events() = ToProto(memory.events);
  for (const MemoryRow& row : memory.rows) {
    v1::MemoryRow* to = out.add_rows();
    to->set_rank(row.rank);
    to->set_pid(row.pid);
    to->set_location(row.location);
    to->set_instruction(row.instruction.value());
    *to->mutable_profile() = ToProto(row.profile);
    *to->mutable_times() = ToProto(row.times);
  }
  out.set_lost(memory.lost);
  return out;
}

absl::StatusOr<WindowMemory> FromProto(const v1::WindowMemory& from, size_t location_count) {
  RETURN_IF_ERROR(CheckCount(from.rows_size(), kMaxMemoryRows, "memory.rows"));
  RETURN_IF_ERROR(CheckTotal(from.lost(), "memory.lost", kMaxSampleTotal));
  WindowMemory out;
  ASSIGN_OR_RETURN(out.events, FromProto(from.events()));
  LoadTimes all;
  for (const v1::MemoryRow& row : from.rows()) {
    ASSIGN_OR_RETURN(MemoryRow read, Read(row, location_count));
    all.Merge(read.times);
    for (const BorderTime& border : all.borders) {
      for (const uint64_t cycles : {border.told_cycles, border.untold_cycles})
        RETURN_IF_ERROR(CheckTotal(cycles, "memory.rows.times", kMostWindowCycles));
    }
    out.rows.push_back(std::move(read));
  }
  out.lost = from.lost();
  return out;
}

}  // namespace perfd::wire
