#include "agent/pipeline/raw/raw_memory.h"

namespace perfd::agent {

void MemoryCounter::SetEvents(std::vector<MemoryEvent> events) {
  if (events.size() > kMaxMemoryEvents) events.resize(kMaxMemoryEvents);
  events_ = std::move(events);
}

RawMemoryRow* MemoryCounter::RowOf(const Key& key, size_t most_rows) {
  auto it = index_.find(key);
  if (it == index_.end()) {
    if (memory_.rows.size() >= most_rows) return nullptr;
    it = index_.emplace(key, memory_.rows.size()).first;
    memory_.rows.push_back({.rank = key.rank, .pid = key.pid, .at = key.at});
  }
  return &memory_.rows[it->second];
}

void MemoryCounter::Count(int32_t rank, int32_t pid, const RawLocation& at,
                          const SampledAccess& access) {
  RawMemoryRow* row = RowOf({rank, pid, at}, kMaxRawMemoryRows);
  if (row == nullptr)
    row = RowOf({rank, pid, {.kind = RawLocation::Kind::kOther}}, 2 * kMaxRawMemoryRows);
  if (row == nullptr) {
    ++memory_.lost;
    return;
  }
  SampledAccess counted = access;
  const uint64_t cycles = LoadCycles(access);
  if (cycles > kMostWindowCycles - cycles_)
    counted.access.latency_cycles = 0;
  else
    cycles_ += cycles;
  row->profile.Add(counted);
  row->times.Add(counted);
}

RawMemory MemoryCounter::Drain() {
  index_.clear();
  cycles_ = 0;
  RawMemory memory = std::exchange(memory_, {});
  // A window without accesses has nothing to say of events either.
  if (!memory.rows.empty() || memory.lost > 0) memory.events = events_;
  return memory;
}

}  // namespace perfd::agent
