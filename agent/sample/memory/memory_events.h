// agent/sample/memory/memory_events.h - which events of this processor tell where loads and stores were found, and why none does.
//
// Shape    PlanMemoryEvents looks in sysfs and tries what it finds; values in, a value out.
// Rules    nothing is known by the name of a processor: the kernel's own events (mem-loads, mem-stores, and mem-loads-aux where the
//          load latency of newer processors needs it in front) or its PMU ibs_op. The kernel's part is left out, by the processor
//          or by swfilt of newer kernels; where neither can (IBS before Linux 6.14), its samples are dropped by who reads them.
// Source   arch/x86/events/intel/core.c (EVENT_ATTR_STR mem-loads, mem-loads-aux; intel_pmu_hw_config: "-ENODATA" when the auxiliary
//          event does not lead); arch/x86/events/amd/ibs.c (cnt_ctl, and ldlat of Zen 5: 128 to 2048 cycles in steps of 128);
//          perf_event_open(2), precise_ip.
#ifndef AGENT_SAMPLE_MEMORY_MEMORY_EVENTS_H_
#define AGENT_SAMPLE_MEMORY_MEMORY_EVENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "agent/sample/event_choice.h"
#include "agent/sample/sampling_event.h"

namespace perfd::agent {

enum class MemoryMethod : uint8_t { kNone, kPebs, kIbs };

enum class MemoryObstacle : uint8_t {
  kNone,
  kNoPmu,         // the kernel knows no PMU: a hypervisor hides it, or the kernel lacks the driver
  kNoEvents,      // there is one, without events of memory
  kNotPermitted,  // perf_event_paranoid, or no CAP_PERFMON
  kInUse,         // by a watchdog or another profiler
  kDoesNotOpen,   // the kernel names the event and refuses it
};

struct MemoryEventPlan {
  MemoryMethod method = MemoryMethod::kNone;
  MemoryObstacle obstacle = MemoryObstacle::kNone;
  int error = 0;  // errno of the first that did not open
  uint64_t lowest_threshold =
      0;  // of a latency in cycles; 0: the processor cannot leave faster loads out
  std::vector<AccessEvent> events{};  // those that open; if none does, all
};

// `threshold`: loads that take fewer cycles are left out where the processor can, as near as it can.
MemoryEventPlan PlanMemoryEvents(const std::string& sys_root, uint64_t threshold, EventProbe probe);

// Which events there are, or why none is.
std::string PlanText(const MemoryEventPlan& plan);

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_MEMORY_MEMORY_EVENTS_H_
