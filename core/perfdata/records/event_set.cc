#include "core/perfdata/records/event_set.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace perfd {

absl::StatusOr<EventSet> EventSet::Create(const std::vector<IdentifiedEvent>& events,
                                          int64_t clock_offset_ns) {
  if (events.empty()) return absl::InvalidArgumentError("no event is described");
  EventSet set;
  const EventLayout& first = events[0].layout;
  set.sample_id_offset_ = first.SampleIdOffset();
  set.trailer_id_offset_ = first.TrailerIdOffset();
  for (size_t i = 0; i < events.size(); ++i) {
    const EventLayout& layout = events[i].layout;
    if (!layout.can_decode())
      return absl::UnimplementedError(absl::StrCat("samples of event ", i,
                                                   " have fields that this version does not know "
                                                   "(sample_type ",
                                                   absl::Hex(layout.sample_type), ")"));
    const bool alone = events.size() == 1;
    if (!alone &&
        (layout.SampleIdOffset() < 0 || layout.SampleIdOffset() != set.sample_id_offset_ ||
         layout.TrailerIdOffset() != set.trailer_id_offset_))
      return absl::InvalidArgumentError(
          "the events cannot be told apart: their samples do not name them at one place");
    set.decoders_.emplace_back(layout, clock_offset_ns);
    for (const uint64_t id : events[i].ids) {
      const auto [it, is_new] = set.by_id_.emplace(id, i);
      if (!is_new && it->second != i)
        return absl::InvalidArgumentError(absl::StrCat("identifier ", id, " is of two events"));
    }
  }
  return set;
}

// Nothing: a sample of an event that is not described.
std::optional<size_t> EventSet::EventOf(std::span<const std::byte> record) const {
  if (decoders_.size() == 1) return 0;
  ByteReader reader(record);
  const auto header = reader.Read<perf_event_header>();
  const bool sample = header.type == PERF_RECORD_SAMPLE;
  const std::optional<size_t> unnamed = sample ? std::nullopt : std::optional<size_t>(0);
  const int offset = sample ? sample_id_offset_ : trailer_id_offset_;
  if (!reader.ok() || offset < 0) return unnamed;
  const auto bytes = static_cast<size_t>(offset);
  if (bytes > reader.remaining() || header.type >= kFirstUserRecord) return unnamed;
  reader.Skip(sample ? bytes : reader.remaining() - bytes);
  const auto id = reader.Read<uint64_t>();
  const auto it = by_id_.find(id);
  return reader.ok() && it != by_id_.end() ? it->second : unnamed;
}

EventSet::Decoded EventSet::Decode(std::span<const std::byte> record) {
  const std::optional<size_t> event = EventOf(record);
  if (!event.has_value()) return {0, MalformedRecord{}};
  return {*event, decoders_[*event].Decode(record)};
}

uint64_t EventSet::TimeOf(std::span<const std::byte> record) const {
  return decoders_[EventOf(record).value_or(0)].TimeOf(record);
}

}  // namespace perfd
