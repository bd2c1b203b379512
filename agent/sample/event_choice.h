// agent/sample/event_choice.h - picks the event that will really open here.
//
// Shape    ChooseEvent("auto" or a name) -> attribute that was tried on this machine.
// Rules    auto: cycles with the highest precision that opens, else cpu-clock. With the kernel when that is allowed.
// Errors   kPermissionDenied (names the sysctl), kUnimplemented (no such event here), kInvalidArgument (unknown name).
// Source   perf_event_open(2) precise_ip; Documentation/admin-guide/sysctl/kernel.rst perf_event_paranoid.
#ifndef AGENT_SAMPLE_EVENT_CHOICE_H_
#define AGENT_SAMPLE_EVENT_CHOICE_H_

#include <linux/perf_event.h>

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "agent/kernel/kernel_causes.h"
#include "agent/sample/access_events.h"
#include "agent/sample/sampling_event.h"

namespace perfd::agent {

struct ChosenEvent {
  perf_event_attr attr{};
  std::string name;  // "cpu-clock", "cycles:u (precise 2)"
  bool kernel_included = false;
  std::shared_ptr<const KernelCauses> kernel_causes;  // null: samples of the kernel have no cause
  int stack_rings = 0;      // in so many rings samples carry a piece of the stack besides
  AccessEvents accesses{};  // in each ring besides
};

// Tries to open an event and closes it again; 0 or errno. ProbePerfEvent outside tests.
using EventProbe = absl::FunctionRef<int(const perf_event_attr&)>;

// What opens an access event in the ring of the event of time.
FurtherEvent FurtherEventOf(const AccessEvent& access, const perf_event_attr& time);

absl::StatusOr<ChosenEvent> ChooseEvent(const SamplingOptions& options, EventProbe probe);

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_EVENT_CHOICE_H_
