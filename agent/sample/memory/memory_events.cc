#include "agent/sample/memory/memory_events.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/sample/memory/sysfs_pmu.h"
#include "agent/sample/sampling_event.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kProbePeriod = 100'003;
constexpr uint64_t kLowestPebs = 3;  // cycles: SDM volume 3, MSR_PEBS_LD_LAT
constexpr uint64_t kHighestPebs = 0xffff;
constexpr uint64_t kIbsStep = 128;
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
  EventTerms changed;
  if (filters) changed["ldlat"] = std::clamp(threshold, kLowestPebs, kHighestPebs);
  const auto loads = pmu.EncodeNamed("mem-loads", changed);
  if (loads.ok()) {
    plan->events.push_back({Precise(*loads), leader, /*loads=*/true, /*stores=*/false});
    if (filters) plan->lowest_threshold = kLowestPebs;
  }
  const auto stores = pmu.EncodeNamed("mem-stores", {});
  if (stores.ok())
    plan->events.push_back({Precise(*stores), std::nullopt, /*loads=*/false, /*stores=*/true});
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
  plan->events.push_back({*op, std::nullopt, /*loads=*/true, /*stores=*/true});
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
int Try(const MemoryEvent& event, EventProbe probe) {
  if (event.leader.has_value()) {
    const int led = probe(MakeMemoryAttr(*event.leader, kProbePeriod));
    if (led != 0) return led;
  }
  const int error = probe(MakeMemoryAttr(event.event, kProbePeriod));
  return event.leader.has_value() && error == ENODATA ? 0 : error;
}

void TryAll(EventProbe probe, MemoryEventPlan* plan) {
  for (const MemoryEvent& event : plan->events) {
    const int error = Try(event, probe);
    if (error == 0) continue;
    plan->error = error;
    plan->obstacle = ObstacleOf(error);
    return;
  }
}

}  // namespace

perf_event_attr MakeMemoryAttr(const EventEncoding& encoding, uint64_t period) {
  perf_event_attr attr = AttrOf(encoding);
  attr.sample_period = period;
  attr.sample_type |= PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_DATA_SRC;
  attr.exclude_hv = attr.exclude_kernel;
  return attr;
}

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

}  // namespace perfd::agent
