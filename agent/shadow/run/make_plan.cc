#include "agent/shadow/run/make_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/shadow/cpu_state.h"
#include "agent/shadow/shadow_reading.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kGatherNs = 1'000'000;
constexpr uint32_t kRetries = 8;
constexpr double kSoftShare = 0.85;      // of the hard limit: no run begins later
constexpr uint64_t kLongestStretch = 4;  // of the hard limit, that part
constexpr int64_t kLongestWarmUp = 16;   // likewise
constexpr uint64_t kAgentWaitNs = 50'000'000;

// How far a place, counted round, lies above the copy.
uint64_t ShiftOf(const CodeCopy& copy, int32_t place) {
  const size_t at = static_cast<size_t>(std::max(0, place)) % (copy.places.shifts.size() + 1);
  return at == 0 ? 0 : copy.places.shifts[at - 1];
}

bool IsEntryOf(const CodeCopy& copy, uint64_t address) {
  const uint64_t shift = address - copy.entry;
  return shift == 0 || std::find(copy.places.shifts.begin(), copy.places.shifts.end(), shift) !=
                           copy.places.shifts.end();
}

absl::Status AddTraceCheck(const CodeCopy& copy, ShadowPlan* plan, RunEntry* run) {
  uint32_t check = 0;
  for (uint32_t i = 0; i + 1 < plan->run_count; ++i)
    check = std::max(check, plan->runs[i].flags >> kRunCheckShift & kRunCheckMask);
  if (check >= kMaxTraceChecks)
    return absl::ResourceExhaustedError("too many traced runs for one shadow");
  TraceCheck& kept = plan->tables.trace_checks[check];
  for (size_t n = 0; n < std::min<size_t>(copy.references.size(), kTraceCount); ++n)
    kept.kept[n / 64] |= uint64_t{copy.references[n].traced} << n % 64;
  run->flags |= kRunTrace | (check + 1) << kRunCheckShift;
  return absl::OkStatus();
}

// Of a traced run: what it tells of the runs after it.
void LookAheadBy(const CodeCopy& copy, ShadowPlan* plan, RunEntry* run) {
  LookAhead& ahead = plan->tables.ahead;
  for (size_t n = 0; n < std::min<size_t>(copy.references.size(), kTraceCount); ++n) {
    ahead.reads[n / 64] |= uint64_t{copy.references[n].reads} << n % 64;
    ahead.writes[n / 64] |= uint64_t{copy.references[n].writes} << n % 64;
  }
  run->flags |= kRunLookAhead;
}

absl::Status CheckSize(const ShadowRequest& request, uint32_t blocks) {
  if (request.team < 1 || static_cast<uint32_t>(request.team) > blocks)
    return absl::FailedPreconditionError(
        absl::StrCat("a team of ", request.team, ": there is room for ", blocks, " threads"));
  const size_t runs = request.runs.size() + kProbeRuns;
  if (runs <= kMaxRuns && runs * static_cast<size_t>(request.team) <= kResultSlots &&
      request.restores.size() <= kMaxRestores)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a shadow of ", runs, " runs and ",
                                                 request.restores.size(),
                                                 " ranges to restore is too large"));
}

}  // namespace

uint64_t BytesWritten(const ShadowRequest& request, const MemoryFacts& memory) {
  uint64_t bytes = std::min(request.written.most_bytes, memory.anonymous);
  for (const auto& range : request.restores) bytes += std::min(range.second, uint64_t{1} << 40);
  Evict most = Evict::kNothing;
  for (const RunSpec& run : request.runs) most = std::max(most, run.evict);
  return bytes + EvictBytesOfThisCpu(most) * static_cast<uint64_t>(std::max(1, request.team));
}

std::vector<const CodeCopy*> AllCopies(const InstalledLoop& installed) {
  std::vector<const CodeCopy*> all;
  for (const CodeCopy& copy : installed.copies) all.push_back(&copy);
  const auto add = [&all](const std::vector<absl::StatusOr<CodeCopy>>& copies) {
    for (const auto& copy : copies) {
      if (copy.ok()) all.push_back(&*copy);
    }
  };
  add(installed.batched);
  for (const auto* set : {&installed.apart, &installed.batched_apart}) {
    if (!set->has_value()) continue;
    add((*set)->copies);
    add((*set)->traced);
  }
  return all;
}

absl::StatusOr<const CodeCopy*> CopyOf(const InstalledLoop& installed, const RunSpec& request) {
  const auto variant = static_cast<size_t>(request.variant);
  if (request.form != CopyForm::kUsual) {
    const auto& set = request.instances == 0 ? installed.apart : installed.batched_apart;
    if (!set) return absl::InvalidArgumentError("the loop has no such copies");
    const auto& copies = request.form == CopyForm::kApart ? set->copies : set->traced;
    if (variant >= copies.size()) return absl::InvalidArgumentError("no such copy");
    RETURN_IF_ERROR(copies[variant].status());
    return &*copies[variant];
  }
  if (request.instances == 0) return &installed.copies[variant];
  if (variant >= installed.batched.size()) return installed.batches;
  RETURN_IF_ERROR(installed.batched[variant].status());
  return &*installed.batched[variant];
}

absl::Status AddRun(const PatchSite& site, const RunSpec& request, ShadowPlan* plan,
                    uint32_t* selves) {
  const InstalledLoop& installed = site.built.installed;
  if (request.variant < 0 || static_cast<size_t>(request.variant) >= installed.copies.size())
    return absl::InvalidArgumentError(absl::StrCat("no variant ", request.variant));
  const auto variant = static_cast<size_t>(request.variant);
  ASSIGN_OR_RETURN(const CodeCopy* chosen, CopyOf(installed, request));
  const CodeCopy& copy = *chosen;
  RunEntry& run = plan->runs[plan->run_count++];
  run.copy = copy.entry + ShiftOf(copy, request.place);
  plan->tables.references = std::max<uint64_t>(plan->tables.references, copy.references.size());
  run.iteration_limit = request.iteration_limit;
  run.instances = request.instances;
  run.flags |= static_cast<uint32_t>(request.evict) << kRunEvictShift;
  if (request.successive) {
    if (copy.places.turn == 0)
      return absl::InvalidArgumentError("only batches go on from run to run");
    run.turn = copy.places.turn + ShiftOf(copy, request.place);
    run.flags |= kRunSuccessive;
    plan->flags |= kPlanSuccessive;
    LookAhead& ahead = plan->tables.ahead;
    const bool traced = installed.names[variant].Has(Change::kTrace);
    traced ? LookAheadBy(copy, plan, &run) : void(++ahead.runs);
  }
  if (request.natural) {
    run.flags |= kRunNatural;
    plan->flags |= kPlanNatural;
  }
  if (request.restore) run.flags |= kRunRestore;
  if (request.learn) run.flags |= kRunLearn;
  if (copy.flush_denormals) run.flags |= kRunFtz | kRunDaz;
  if (installed.names[variant].Has(Change::kTrace)) run.flags |= kRunTrace;
  if (request.baseline) run.flags |= kRunBaseline;
  if (request.form == CopyForm::kApartTraced) RETURN_IF_ERROR(AddTraceCheck(copy, plan, &run));
  if (copy.edits.pinned > 0 || !copy.self_pointers.empty()) run.flags |= kRunPinned;
  // Runs of the same copy share their entries.
  for (uint32_t i = 0; i + 1 < plan->run_count && !copy.self_pointers.empty(); ++i) {
    if (!IsEntryOf(copy, plan->runs[i].copy)) continue;
    run.self_first = plan->runs[i].self_first;
    run.self_count = plan->runs[i].self_count;
    return absl::OkStatus();
  }
  run.self_first = static_cast<uint16_t>(*selves);
  run.self_count = static_cast<uint16_t>(copy.self_pointers.size());
  for (const SelfPointer& self : copy.self_pointers) {
    if (*selves >= kMaxSelfWords)
      return absl::ResourceExhaustedError("too many pointers into the thread block");
    plan->tables.selves[(*selves)++] = {self.word, 0, self.value};
  }
  return absl::OkStatus();
}

absl::StatusOr<ShadowPlan> MakePlan(const PatchSite& site, const ShadowRequest& request,
                                    const PlanLimits& limits, const TickClock& ticks) {
  RETURN_IF_ERROR(CheckSize(request, limits.blocks));
  ShadowPlan plan{};
  plan.site = site.number();
  plan.team = static_cast<uint32_t>(request.team);
  plan.retries = kRetries;
  plan.flags = kPlanPinCpu | kPlanWaitForAgent;
  plan.gather_ns = kGatherNs;
  const int64_t longest = std::clamp<int64_t>(request.shadow_ns, kNsPerMs, limits.max_shadow_ns);
  plan.shadow_ns = static_cast<uint64_t>(longest);
  plan.soft_ticks = ticks.ToTicks(static_cast<int64_t>(kSoftShare * static_cast<double>(longest)));
  plan.agent_wait_ns = std::min(kAgentWaitNs, plan.shadow_ns / 2);
  for (size_t level = 0; level < kEvictLevels; ++level)
    plan.memory.evict_bytes[level] = EvictBytesOfThisCpu(static_cast<Evict>(level));
  int64_t warm_ns = 0;
  for (const RunSpec& run : request.runs) warm_ns = std::max(warm_ns, run.warm_ns);
  plan.tables.warm_ticks = ticks.ToTicks(std::min(warm_ns, longest / kLongestWarmUp));
  plan.tables.stretch_ns = plan.shadow_ns / kLongestStretch;
  uint32_t selves = 0;
  plan.runs[plan.run_count++].copy = site.empty_copy;
  for (const RunSpec& run : request.runs) RETURN_IF_ERROR(AddRun(site, run, &plan, &selves));
  for (size_t i = 1; i < kProbeRuns; ++i) plan.runs[plan.run_count++].copy = site.empty_copy;
  for (size_t i = 0; i < request.restores.size(); ++i) {
    const int32_t writer = i < request.writers.size() ? request.writers[i] : -1;
    plan.restores[plan.restore_count++] = {request.restores[i].first, request.restores[i].second,
                                           writer < 0 ? kSharedOut : static_cast<uint32_t>(writer),
                                           0};
  }
  return plan;
}

}  // namespace perfd::agent
