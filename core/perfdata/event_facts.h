// core/perfdata/event_facts.h - what an event of a recording is called, and which accesses it does not see. Pure.
#ifndef CORE_PERFDATA_EVENT_FACTS_H_
#define CORE_PERFDATA_EVENT_FACTS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/perfdata/recording_facts.h"

namespace perfd {

// In display form; "event 2" where none is told.
std::string EventName(const RecordedEvent& event, size_t index);

// Of Intel's load latency, cycles: faster loads are not seen. 0: of another event.
uint32_t LatencyThreshold(const perf_event_attr& attr);

}  // namespace perfd

#endif  // CORE_PERFDATA_EVENT_FACTS_H_
