#include "core/perfdata/event_facts.h"

#include "absl/strings/str_cat.h"
#include "core/base/utf8.h"

namespace perfd {

std::string EventName(const RecordedEvent& event, size_t index) {
  return event.name.empty() ? absl::StrCat("event ", index + 1) : DisplayForm(event.name);
}

// Source: /sys/devices/cpu/events/mem-loads ("event=0xcd,umask=0x1,ldlat=3") and format/ldlat ("config1:0-15").
uint32_t LatencyThreshold(const perf_event_attr& attr) {
  const uint64_t event = attr.config & 0xffff;
  const bool large_core = attr.type == PERF_TYPE_RAW && event == 0x1cd;
  const bool small_core = attr.type >= PERF_TYPE_MAX && event == 0x5d0;  // a PMU of its own
  return large_core || small_core ? static_cast<uint32_t>(attr.config1 & 0xffff) : 0;
}

}  // namespace perfd
