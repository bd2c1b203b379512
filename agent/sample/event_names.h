// agent/sample/event_names.h - an event name -> its encoding for the kernel; the one door to libpfm4.
//
// Shape    EncodeEvent("cycles:u") -> type, config and modifiers. "cpu-clock" needs no tables and always works.
// Errors   kInvalidArgument: no such event (lists near names) or malformed modifiers; kUnimplemented: libpfm4 does
//          not know this CPU.
// Threads  thread-compatible: libpfm4 keeps global tables, call from one thread at a time.
// Source   pfm_get_os_event_encoding(3), pfm_initialize(3), libpfm_perf_event_raw(3).
#ifndef AGENT_SAMPLE_EVENT_NAMES_H_
#define AGENT_SAMPLE_EVENT_NAMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perfd::agent {

struct EventEncoding {
  std::string name;  // as asked for
  uint32_t type = 0;
  uint64_t config = 0;
  uint64_t config1 = 0;
  uint64_t config2 = 0;
  bool exclude_user = false;
  bool exclude_kernel = false;
  uint32_t precise = 0;
};

absl::StatusOr<EventEncoding> EncodeEvent(absl::string_view name);

EventEncoding CpuClockEncoding();
EventEncoding CyclesEncoding();

// At most three of `known` that are a few typing errors away from `name`, nearest first. Pure.
std::vector<std::string> NearNames(absl::string_view name, const std::vector<std::string>& known);

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_EVENT_NAMES_H_
