// core/perfdata/event_table.h - the events that a recording describes, and which of them has an identifier.
//
// Bounds   kMostEvents, and kMostIds identifiers of all together: a few bytes of a recording may name the same ones again and again.
#ifndef CORE_PERFDATA_EVENT_TABLE_H_
#define CORE_PERFDATA_EVENT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/perfdata/recording_facts.h"

namespace perfd {

class EventTable {
 public:
  static constexpr size_t kMostEvents = 4096;
  static constexpr size_t kMostIds = size_t{1} << 20;  // an event has one for every CPU, or thread

  // How many identifiers one more event may have.
  size_t RoomForIds() const { return kMostIds - id_count_; }
  bool full() const { return events_.size() >= kMostEvents; }
  void Add(const perf_event_attr& attr, std::vector<uint64_t> ids) {
    for (const uint64_t id : ids) by_id_.try_emplace(id, events_.size());
    id_count_ += ids.size();
    events_.push_back({.name = {}, .attr = attr, .ids = std::move(ids)});
  }
  // Null: of none.
  RecordedEvent* Find(uint64_t id) {
    const auto it = by_id_.find(id);
    return it == by_id_.end() ? nullptr : &events_[it->second];
  }
  const std::vector<RecordedEvent>& all() const { return events_; }
  std::vector<RecordedEvent>& all() { return events_; }

 private:
  std::vector<RecordedEvent> events_;
  absl::flat_hash_map<uint64_t, size_t> by_id_;
  size_t id_count_ = 0;
};

}  // namespace perfd

#endif  // CORE_PERFDATA_EVENT_TABLE_H_
