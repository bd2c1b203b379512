#include <linux/capability.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/doctor/check_scope.h"
#include "agent/sample/event_choice.h"
#include "agent/sample/memory/memory_events.h"
#include "agent/sample/ring/perf_event.h"

namespace perfd::agent {
namespace {

struct SysctlRule {
  const char* file;  // below /proc/sys
  const char* name;  // as sysctl(8) writes it
  int64_t lowest_ok;
  int64_t highest_ok;
  int64_t fix_value;
  bool optional;
  bool excused;  // a capability makes the value irrelevant
};

void CheckSysctl(const CheckScope& scope, const SysctlRule& rule) {
  const absl::StatusOr<int64_t> value = scope.procfs.SysctlInt(rule.file);
  NodeCheck check{.name = rule.name, .optional = rule.optional};
  if (!value.ok()) {
    check.found = std::string(value.status().message());
    check.fix =
        absl::StrCat("sysctl ", rule.name, "  # must exist: boot a kernel with CONFIG_PERF_EVENTS");
  } else {
    const bool in_range = *value >= rule.lowest_ok && *value <= rule.highest_ok;
    check.ok = in_range || rule.excused;
    check.found =
        absl::StrCat(*value, !in_range && rule.excused ? " (a capability overrides it)" : "");
    check.fix = absl::StrCat("sysctl -w ", rule.name, "=", rule.fix_value);
  }
  scope.Add(std::move(check));
}

int Probe(const CheckScope& scope, const perf_event_attr& attr) {
  return scope.options.probe ? scope.options.probe(attr) : ProbePerfEvent(attr);
}

void CheckEvent(const CheckScope& scope, const char* event, bool optional, const std::string& fix) {
  const auto probe = [&](const perf_event_attr& attr) { return Probe(scope, attr); };
  SamplingOptions sampling;
  sampling.event = event;
  const absl::StatusOr<ChosenEvent> chosen = ChooseEvent(sampling, probe);
  NodeCheck check{
      .name = absl::StrCat("perf_event_open ", event), .ok = chosen.ok(), .optional = optional};
  check.found = chosen.ok()
                    ? absl::StrCat("opens as ", chosen->name,
                                   chosen->kernel_included ? ", kernel included" : ", user only")
                    : std::string(chosen.status().message());
  check.fix =
      absl::IsPermissionDenied(chosen.status()) ? "sysctl -w kernel.perf_event_paranoid=1" : fix;
  scope.Add(std::move(check));
}

const char* FixOf(MemoryObstacle obstacle) {
  switch (obstacle) {
    case MemoryObstacle::kNone:
      return "";
    case MemoryObstacle::kNotPermitted:
      return "sysctl -w kernel.perf_event_paranoid=1";
    case MemoryObstacle::kInUse:
      return "sysctl -w kernel.nmi_watchdog=0  # or end the other profiler";
    case MemoryObstacle::kNoPmu:
    case MemoryObstacle::kNoEvents:
    case MemoryObstacle::kDoesNotOpen:
      return "virsh edit this-machine  # let it have the PMU with PEBS or IBS, when it is a "
             "virtual "
             "machine";
  }
  return "";
}

// What memory samples would be made of. Optional: no profile needs them.
void CheckMemoryEvents(const CheckScope& scope) {
  constexpr uint64_t kThreshold = 30;  // cycles: beyond L1
  const MemoryEventPlan plan =
      PlanMemoryEvents(scope.options.sys_root, kThreshold,
                       [&](const perf_event_attr& attr) { return Probe(scope, attr); });
  scope.Add({.name = "memory samples",
             .ok = plan.obstacle == MemoryObstacle::kNone,
             .optional = true,
             .found = PlanText(plan),
             .fix = FixOf(plan.obstacle)});
}

}  // namespace

// Bounds. paranoid: 2 forbids the kernel's part, 3 (Debian) everything; mlock: the kernel's default of 516 KiB per CPU
// holds a ring of 64 KiB for 7 threads per CPU; rate: the highest that a profile may ask for.
void CheckPerf(const CheckScope& scope) {
  constexpr int64_t kAny = INT64_MAX;
  const SysctlRule rules[] = {
      {"kernel/perf_event_paranoid", "kernel.perf_event_paranoid", -1, 1, 1, false,
       scope.MayProfile()},
      {"kernel/perf_event_mlock_kb", "kernel.perf_event_mlock_kb", 516, kAny, 2048, false,
       scope.Has(CAP_IPC_LOCK)},
      {"kernel/perf_event_max_sample_rate", "kernel.perf_event_max_sample_rate",
       static_cast<int64_t>(kMaxFrequencyHz), kAny, 100'000, false, false},
      {"kernel/kptr_restrict", "kernel.kptr_restrict", 0, 0, 0, true, scope.Has(CAP_SYSLOG)},
  };
  for (const SysctlRule& rule : rules) CheckSysctl(scope, rule);
  CheckEvent(scope, "cpu-clock", false, "boot a kernel with CONFIG_PERF_EVENTS=y");
  CheckEvent(scope, "cycles", true,
             "virsh edit this-machine  # <features><pmu state='on'/></features>, when it is a "
             "virtual machine");
  CheckMemoryEvents(scope);
}

}  // namespace perfd::agent
