#include "agent/sample/explanations.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace perfd::agent {

void CollectExplanations(RingBuffer& buffer, EventSet& events, size_t ring,
                         std::vector<Explanation>* out) {
  uint64_t cursor = RingBuffer::kFirst;
  uint64_t time_ns = 0;
  for (auto bytes = buffer.Peek(&cursor); !bytes.empty(); bytes = buffer.Peek(&cursor)) {
    if (!RecordDecoder::ExplainsSamples(bytes)) continue;
    PerfRecord record = events.Decode(bytes).record;
    const auto* task = std::get_if<TaskEvent>(&record);
    if (task != nullptr && task->kind == TaskEvent::Kind::kRenamed) continue;
    if (task != nullptr) time_ns = task->time_ns;
    if (const auto* mapping = std::get_if<MappingEvent>(&record)) time_ns = mapping->time_ns;
    out->push_back({time_ns, ring, std::move(record)});
  }
}

void SortByTime(std::vector<Explanation>* explanations) {
  std::stable_sort(
      explanations->begin(), explanations->end(),
      [](const Explanation& a, const Explanation& b) { return a.time_ns < b.time_ns; });
}

}  // namespace perfd::agent
