#include "agent/sample/event_choice.h"

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/sample/ring/perf_event.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr uint32_t kHighestPrecision = 3;

bool IsForbidden(int error) {
  return error == EACCES || error == EPERM;
}

// Such an event does not exist here; EBUSY and the like are another matter.
bool IsMissing(int error) {
  return error == ENOENT || error == ENODEV || error == EOPNOTSUPP || error == ENOSYS ||
         error == EINVAL;
}

ChosenEvent Describe(const perf_event_attr& attr, const std::string& name,
                     const SamplingOptions& options) {
  ChosenEvent event;
  event.kernel_causes = options.kernel_causes;
  event.attr = attr;
  event.kernel_included = attr.exclude_kernel == 0;
  event.name = name;
  if (attr.exclude_kernel != 0 && name.find(':') == std::string::npos) event.name += ":u";
  if (attr.precise_ip != 0) {
    absl::StrAppend(&event.name, " (precise ", static_cast<unsigned>(attr.precise_ip), ")");
  }
  for (const AccessEvent& access : options.accesses) {
    event.accesses.Add(FurtherEventOf(access, attr), access.period_step);
  }
  return event;
}

// Opens as asked for, or without the kernel where that is all that is allowed.
int ProbeWithOrWithoutKernel(EventProbe probe, const SamplingOptions& options,
                             perf_event_attr* attr) {
  int error = probe(*attr);
  if (error == EINVAL && attr->read_format != 0) {
    attr->read_format = 0;  // before Linux 6.0: what is lost last of all stays uncounted
    error = probe(*attr);
  }
  if (IsForbidden(error) && attr->exclude_kernel == 0 && attr->exclude_user == 0) {
    LeaveKernelOut(options, attr);
    error = probe(*attr);
  }
  return error;
}

absl::StatusOr<ChosenEvent> TryEncoding(const EventEncoding& encoding,
                                        const SamplingOptions& options, EventProbe probe) {
  perf_event_attr attr = MakeSamplingAttr(encoding, options);
  const int error = ProbeWithOrWithoutKernel(probe, options, &attr);
  if (error != 0) return PerfOpenError(error, encoding.name, "this thread (a trial)");
  return Describe(attr, encoding.name, options);
}

}  // namespace

FurtherEvent FurtherEventOf(const AccessEvent& access, const perf_event_attr& time) {
  FurtherEvent further{.attr = MakeAccessAttr(access.event, access.first_period)};
  further.attr.read_format = time.read_format;
  if (access.leader.has_value()) further.leader = MakeLeaderAttr(*access.leader);
  return further;
}

absl::StatusOr<ChosenEvent> ChooseEvent(const SamplingOptions& options, EventProbe probe) {
  if (options.event != "auto") {
    ASSIGN_OR_RETURN(const EventEncoding encoding, EncodeEvent(options.event));
    return TryEncoding(encoding, options, probe);
  }
  EventEncoding cycles = CyclesEncoding();
  for (uint32_t precise = kHighestPrecision + 1; precise-- > 0;) {
    cycles.precise = precise;
    perf_event_attr attr = MakeSamplingAttr(cycles, options);
    const int error = ProbeWithOrWithoutKernel(probe, options, &attr);
    if (error == 0) return Describe(attr, cycles.name, options);
    if (!IsMissing(error)) break;
  }
  return TryEncoding(CpuClockEncoding(), options, probe);
}

}  // namespace perfd::agent
