#include "agent/sample/memory/memory_events.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/sample/memory/sysfs_pmu.h"
#include "agent/sample/sampling_event.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kLowestPebs = 3;  // cycles: SDM volume 3, MSR_PEBS_LD_LAT
constexpr uint64_t kHighestPebs = 0xffff;
constexpr uint64_t kIbsStep = 128;
constexpr uint64_t kIbsPeriods = 16;  // in steps of so many: perf_ibs_init
constexpr uint64_t kHighestIbs = 2048;

// A processor with two kinds of cores has a PMU for each.
constexpr const char* kCorePmus[] = {"cpu", "cpu_core", "cpu_atom"};

// By PEBS: the instruction itself, or it is not sampled.
EventEncoding Precise(EventEncoding encoding) {
  encoding.precise = 2;
  encoding.exclude_kernel = true;
  return encoding;
}

void AddPebs(const SysfsPmu& pmu, uint64_t threshold, MemoryEventPlan* plan) {
  std::optional<EventEncoding> leader;
  if (pmu.HasEvent("mem-loads-aux")) {
    const auto aux = pmu.EncodeNamed("mem-loads-aux", {});
    if (!aux.ok()) return;
    leader = *aux;
    leader->exclude_kernel = true;
  }
  const bool filters = pmu.HasFormat("ldlat");
  const uint64_t least = std::clamp(threshold, kLowestPebs, kHighestPebs);
  EventTerms changed;
  if (filters) changed["ldlat"] = least;
  const auto loads = pmu.EncodeNamed("mem-loads", changed);
  if (loads.ok()) {
    plan->events.push_back({.event = Precise(*loads),
                            .leader = leader,
                            .latency_threshold = filters ? static_cast<uint32_t>(least) : 0});
    if (filters) plan->lowest_threshold = kLowestPebs;
  }
  const auto stores = pmu.EncodeNamed("mem-stores", {});
  if (stores.ok()) plan->events.push_back({.event = Precise(*stores)});
}

void AddIbs(const SysfsPmu& pmu, uint64_t threshold, MemoryEventPlan* plan) {
  EventTerms terms;
  // Micro-operations instead of cycles: what waits for memory is not sampled more often than what does not.
  if (pmu.HasFormat("cnt_ctl")) terms["cnt_ctl"] = 1;
  if (pmu.HasFormat("ldlat")) {
    plan->lowest_threshold = kIbsStep;
    const uint64_t steps = (threshold + kIbsStep - 1) / kIbsStep;
    if (threshold > kLowestPebs) terms["ldlat"] = std::min(steps * kIbsStep, kHighestIbs);
  }
  const bool filtered = pmu.HasFormat("swfilt");
  if (filtered) terms["swfilt"] = 1;
  auto op = pmu.Encode(terms, "");
  if (!op.ok()) return;
  op->exclude_kernel = filtered;
  const auto least = terms.find("ldlat");
  plan->events.push_back(
      {.event = *op,
       .latency_threshold = least == terms.end() ? 0 : static_cast<uint32_t>(least->second),
       .period_step = kIbsPeriods});
}

MemoryObstacle ObstacleOf(int error) {
  switch (error) {
    case 0:
      return MemoryObstacle::kNone;
    case EACCES:
    case EPERM:
      return MemoryObstacle::kNotPermitted;
    case EBUSY:
      return MemoryObstacle::kInUse;
    default:
      return MemoryObstacle::kDoesNotOpen;
  }
}

// An event that needs another one in front says so, and then the other one decides.
int Try(const AccessEvent& event, EventProbe probe) {
  if (event.leader.has_value()) {
    const int led = probe(MakeLeaderAttr(*event.leader));
    if (led != 0) return led;
  }
  const int error = probe(MakeAccessAttr(event.event, event.first_period));
  return event.leader.has_value() && error == ENODATA ? 0 : error;
}

// Those that do not open are left out, unless none does.
void TryAll(EventProbe probe, MemoryEventPlan* plan) {
  std::vector<AccessEvent> open;
  for (const AccessEvent& event : plan->events) {
    const int error = Try(event, probe);
    if (error == 0) open.push_back(event);
    if (error != 0 && plan->error == 0) plan->error = error;
  }
  if (open.empty())
    plan->obstacle = ObstacleOf(plan->error);
  else
    plan->events = std::move(open);
}

}  // namespace

MemoryEventPlan PlanMemoryEvents(const std::string& sys_root, uint64_t threshold,
                                 EventProbe probe) {
  MemoryEventPlan plan;
  bool any = false;
  for (const char* name : kCorePmus) {
    const absl::StatusOr<SysfsPmu> pmu = SysfsPmu::Read(sys_root, name);
    if (!pmu.ok()) continue;
    any = true;
    AddPebs(*pmu, threshold, &plan);
  }
  if (!plan.events.empty()) plan.method = MemoryMethod::kPebs;
  const absl::StatusOr<SysfsPmu> ibs = SysfsPmu::Read(sys_root, "ibs_op");
  if (plan.events.empty() && ibs.ok()) {
    any = true;
    AddIbs(*ibs, threshold, &plan);
    if (!plan.events.empty()) plan.method = MemoryMethod::kIbs;
  }
  if (plan.events.empty()) {
    plan.obstacle = any ? MemoryObstacle::kNoEvents : MemoryObstacle::kNoPmu;
    return plan;
  }
  TryAll(probe, &plan);
  return plan;
}

std::string PlanText(const MemoryEventPlan& plan) {
  std::vector<std::string> names;
  for (const AccessEvent& event : plan.events) names.push_back(event.event.name);
  const std::string events = absl::StrJoin(names, ", ");
  switch (plan.obstacle) {
    case MemoryObstacle::kNone:
      return absl::StrCat(plan.method == MemoryMethod::kPebs ? "PEBS: " : "IBS: ", events,
                          plan.lowest_threshold == 0 ? ", without a threshold of latency" : "");
    case MemoryObstacle::kNoPmu:
      return "the kernel has no PMU: a hypervisor hides it, or its driver is missing";
    case MemoryObstacle::kNoEvents:
      return "the PMU has neither mem-loads (PEBS) nor IBS: the processor, or a hypervisor that "
             "hides them";
    case MemoryObstacle::kNotPermitted:
      return absl::StrCat(events, ": not permitted");
    case MemoryObstacle::kInUse:
      return absl::StrCat(events, ": in use by a watchdog or another profiler");
    case MemoryObstacle::kDoesNotOpen:
      return absl::StrCat(events, ": the kernel names them and refuses them (",
                          std::generic_category().message(plan.error), ")");
  }
  return "";
}

}  // namespace perfd::agent
