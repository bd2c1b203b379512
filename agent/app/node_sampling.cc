#include "agent/app/node_sampling.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/pipeline/cost/own_cpu.h"
#include "agent/procfs/read_file.h"
#include "agent/sample/memory/access_trial.h"
#include "agent/sample/memory/memory_events.h"
#include "agent/sample/perf_sample_source.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// What can be changed is said; that there is no such event is for the doctor to say.
std::vector<AccessEvent> AccessesOf(const MemorySpec& wanted, const SamplingOptions& options,
                                    const ProcFs& procfs, std::vector<Notice>* left_out) {
  if (wanted.latency_threshold_cycles == 0) return {};
  const MemoryEventPlan plan = PlanMemoryEvents(
      "/sys", static_cast<uint64_t>(wanted.latency_threshold_cycles), ProbePerfEvent);
  if (plan.obstacle == MemoryObstacle::kNoPmu || plan.obstacle == MemoryObstacle::kNoEvents)
    return {};
  const auto say = [&](const std::string& why) {
    Notice& notice = left_out->emplace_back();
    notice.severity = Notice::Severity::kInfo;
    notice.text = absl::StrCat("accesses to memory are not all sampled: ", why);
  };
  if (plan.obstacle != MemoryObstacle::kNone) {
    say(PlanText(plan));
    return {};
  }
  const auto time = PerfSampleSource::EventFor(options, procfs);
  if (!time.ok()) return {};  // which is said when the source is made
  AccessTrial trial = TryAccesses(*time, plan.events);
  if (!trial.why_not_all.ok()) say(std::string(trial.why_not_all.message()));
  return std::move(trial.open);
}

}  // namespace

// Some 0.1 s of reading. Modules that are loaded later bring no way into the kernel.
std::shared_ptr<const KernelCauses> NodeSampling::CausesOnce(const ProcFs& procfs) {
  constexpr size_t kMostBytes = size_t{64} << 20;
  MutexLock lock(&mutex_);
  if (causes_ != nullptr) return causes_;
  const auto symbols = ReadWholeFile(procfs.root() + "/kallsyms", kMostBytes);
  causes_ = std::make_shared<const KernelCauses>(KernelCauses::Parse(symbols.value_or("")));
  if (!causes_->known())
    LogInfo(
        "kernel time is not told apart by cause: the kernel's symbols may not be seen "
        "(kernel.kptr_restrict, CAP_SYSLOG)");
  return causes_;
}

absl::StatusOr<OpenedSource> NodeSampling::Open(SamplingOptions options, const MemorySpec& memory,
                                                const ProcFs& procfs, const Clock* clock) {
  options.kernel_causes = CausesOnce(procfs);
  OpenedSource opened;
  options.accesses = AccessesOf(memory, options, procfs, &opened.thinned);
  ASSIGN_OR_RETURN(auto source,
                   PerfSampleSource::Create(options, procfs, clock, &rings_, &opened.thinned));
  for (const AccessEvent& access : options.accesses)
    opened.accesses.push_back({access.event.name, access.latency_threshold});
  const SamplingCost cost = costs_.Of(source->event());
  if (!cost.sample_ns.ok())
    LogWarning("the cost of a sample is not known: {}", Text(cost.sample_ns.status()));
  if (!cost.switch_ns.ok())
    LogWarning("what sampling costs at a switch is not known: {}", Text(cost.switch_ns.status()));
  if (!cost.start_ns.ok())
    LogWarning("what sampling costs where threads start is not known: {}",
               Text(cost.start_ns.status()));
  // Each event of a thread is programmed when it is switched to, and made when it starts: as dear as the first one, at most.
  double events = 1;
  for (const AccessEvent& access : options.accesses) events += access.leader.has_value() ? 2 : 1;
  opened.prices = {.sample_ns = static_cast<double>(cost.sample_ns.value_or(0)),
                   .switch_ns = events * cost.switch_ns.value_or(0),
                   .start_ns = events * cost.start_ns.value_or(0),
                   .shared_cores = CpusMayShareCores()};
  opened.source = std::move(source);
  return opened;
}

void NodeSampling::LearnUsualCosts(const SamplingOptions& usual, const ProcFs& procfs) {
  if (std::exchange(usual_costs_known_, true)) return;
  CausesOnce(procfs);
  const auto event = PerfSampleSource::EventFor(usual, procfs);
  if (event.ok()) costs_.Of(*event);
}

}  // namespace perfd::agent
