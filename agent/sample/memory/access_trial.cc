#include "agent/sample/memory/access_trial.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "agent/sample/ring/perf_event.h"
#include "core/base/cpu_time.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {
namespace {

// A ring with the event of time, and the event by itself.
struct TimeEvent {
  PerfRing ring;
  UniqueFd event;
};

absl::StatusOr<TimeEvent> OpenTime(const ChosenEvent& time) {
  perf_event_attr attr = time.attr;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  PerfOpenResult opened = OpenPerfEvent(attr, {});
  if (!opened.fd.valid()) return PerfOpenError(opened.error, time.name, "this thread (a trial)");
  UniqueFd event(::fcntl(opened.fd.get(), F_DUPFD_CLOEXEC, 0));
  ASSIGN_OR_RETURN(PerfRing ring, PerfRing::Create(std::move(opened.fd), PageBytes()));
  return TimeEvent{std::move(ring), std::move(event)};
}

// In how much of its time it runs, beside whatever is open.
absl::StatusOr<double> RunningShare(const UniqueFd& event) {
  const uint64_t end = ThreadCpuNs() + AccessTrial::kTrialNs;
  while (ThreadCpuNs() < end) continue;
  uint64_t result[3] = {0, 0, 0};  // value, enabled, running
  if (::read(event.get(), result, sizeof result) != sizeof result || result[1] == 0)
    return absl::FailedPreconditionError("the event of time does not say how long it ran");
  return static_cast<double>(result[2]) / static_cast<double>(result[1]);
}

absl::Status TryTogether(const ChosenEvent& time, const std::vector<AccessEvent>& events,
                         AccessTrial* trial) {
  ASSIGN_OR_RETURN(TimeEvent opened, OpenTime(time));
  for (const AccessEvent& event : events) {
    const absl::Status added = opened.ring.AddEvent(FurtherEventOf(event, time.attr), {}).status();
    if (added.ok())
      trial->open.push_back(event);
    else
      trial->why_not_all = added;
  }
  if (trial->open.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const double share, RunningShare(opened.event));
  if (share >= AccessTrial::kLeastShare) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the processor has not counters enough for them: the event of time would run %.0f %% of its "
      "time (kernel.nmi_watchdog=0 frees one)",
      100 * share));
}

}  // namespace

AccessTrial TryAccesses(const ChosenEvent& time, const std::vector<AccessEvent>& events) {
  AccessTrial trial;
  if (events.empty()) return trial;
  const absl::Status together = TryTogether(time, events, &trial);
  if (!together.ok()) return {.open = {}, .why_not_all = together};
  return trial;
}

}  // namespace perfd::agent
