// core/perfdata/records/event_set.h - the events of one stream of records: which of them a record is of, decoded as its layout says.
//
// Shape    Create from the events with the identifiers that the kernel gave them (one per CPU or thread); Decode(record).
// Errors   Create: kInvalidArgument when the events cannot be told apart or an identifier is of two; kUnimplemented when a layout
//          has fields that are not known. A sample with an identifier of none is malformed.
// Threads  thread-bound.
// Source   perf_event_open(2), PERF_SAMPLE_IDENTIFIER: "its position is fixed relative to header.size"; without it
//          PERF_SAMPLE_ID, which stands at one place only where all events have the same fields before it.
#ifndef CORE_PERFDATA_RECORDS_EVENT_SET_H_
#define CORE_PERFDATA_RECORDS_EVENT_SET_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "core/perfdata/records/record_decoder.h"

namespace perfd {

struct IdentifiedEvent {
  EventLayout layout;
  std::vector<uint64_t> ids;  // may be empty of the only one
};

class EventSet {
 public:
  static absl::StatusOr<EventSet> Create(const std::vector<IdentifiedEvent>& events,
                                         int64_t clock_offset_ns = 0);

  struct Decoded {
    size_t event =
        0;  // of those of Create; what is no sample may be of none and is then as of the first
    PerfRecord record;
  };
  Decoded Decode(std::span<const std::byte> record);
  // 0: it has none.
  uint64_t TimeOf(std::span<const std::byte> record) const;
  size_t size() const { return decoders_.size(); }
  const EventLayout& layout(size_t event) const { return decoders_[event].layout(); }

 private:
  EventSet() = default;
  std::optional<size_t> EventOf(std::span<const std::byte> record) const;

  std::vector<RecordDecoder> decoders_;
  absl::flat_hash_map<uint64_t, size_t> by_id_;
  int sample_id_offset_ = -1;
  int trailer_id_offset_ = -1;
};

}  // namespace perfd

#endif  // CORE_PERFDATA_RECORDS_EVENT_SET_H_
