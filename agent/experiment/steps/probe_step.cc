#include "agent/experiment/steps/probe_step.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/experiment/loop/apart.h"
#include "agent/experiment/loop/figures.h"
#include "agent/experiment/loop/protocol.h"
#include "agent/experiment/plan/run_schedule.h"
#include "agent/experiment/steps/batch_step.h"
#include "agent/shadow/protocol.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kMostRestored = 64u << 20;
constexpr uint64_t kLeastStretch =
    4;  // passes between two excluded paths; fewer are mostly entry and exit
constexpr int32_t kMostShortProbes = 3;

// The slowest thread of one run; 0 when a thread has no result.
uint64_t TeamCycles(const ShadowAnswer& answer, int32_t run) {
  uint64_t slowest = 0;
  for (const ShadowRun& result : answer.runs) {
    if (result.run != run) continue;
    if (!result.ok) return 0;
    slowest = std::max(slowest, result.cycles / result.instances);
  }
  return slowest;
}

// REF, the first run of a probe, also copies the pages it writes; COUNT after it finds them copied.
double WarmCycles(const ShadowAnswer& answer) {
  const uint64_t ref = TeamCycles(answer, 0), count = TeamCycles(answer, 1);
  return static_cast<double>(count == 0 ? ref : std::min(ref, count));
}

// The fork may have taken all of the pause: the next one is predicted by it.
StepOutcome RefFailed(LoopKnowledge& known, const ShadowAnswer& answer) {
  const auto failed = std::find_if(answer.runs.begin(), answer.runs.end(),
                                   [](const ShadowRun& r) { return r.run == 0 && !r.ok; });
  const bool told = failed != answer.runs.end();
  const std::string why = told ? failed->failure : answer.outcome;
  if (!told || OutcomeOf(*failed) != RunOutcome::kNotRun)
    return Ended(MeasureState::kRefused,
                 absl::StrCat("the unchanged loop cannot run in a shadow: ", why));
  if (++known.probe.short_probes < kMostShortProbes) return Learned();
  return Ended(MeasureState::kOpen,
               absl::StrCat("a shadow's time was over before the loop ran in it: ", why));
}

// A second run began from what the first one left in memory. Some loops cannot bear that: they are traced in a shadow of its
// own, and restored between runs from then on.
StepOutcome RepeatFailed(LoopKnowledge& known, const char* variant, const std::string& failure) {
  const std::string why = absl::StrCat(variant, " failed: ", failure);
  const bool batched = known.batch.instances > 0;
  if (known.probe.trace_alone && !batched) return Ended(MeasureState::kRefused, why);
  if (batched) ForgetBatch(known, why);
  if (!batched) known.probe.trace_alone = true;
  return Learned();
}

// Few passes of a loop with excluded paths: either it goes over one of them nearly every time, or its instances are that short by
// themselves, as those of loops without such paths may be. Which of the two, several instances tell by how they end. None: go on.
std::optional<StepOutcome> CheckStretch(LoopKnowledge& known, const ShadowAnswer& answer,
                                        uint64_t passes) {
  const std::vector<std::string>& excluded = known.installed.excluded_paths;
  if (excluded.empty() || passes >= kLeastStretch) return std::nullopt;
  ProbeFindings& probe = known.probe;
  const std::vector<bool>& left = answer.left_by_excluded_path;
  probe.short_by_excluded_path |= std::find(left.begin(), left.end(), true) != left.end();
  if (++probe.short_probes < kMostShortProbes) return Learned();
  if (!probe.short_by_excluded_path) return std::nullopt;
  return Ended(MeasureState::kRefused, absl::StrCat("nearly every pass goes over ",
                                                    excluded.front(), ", which no copy can hold"));
}

struct Passes {
  std::vector<ThreadTrace> threads;
  uint64_t longest = 0, each = 0;  // of a run, and of an instance
};

// Not OK: an end of the probe.
std::optional<StepOutcome> CountPasses(LoopKnowledge& known, const ShadowAnswer& answer,
                                       const std::vector<RunSpec>& runs, Passes* out) {
  out->threads.resize(answer.traces.size());
  for (const ShadowRun& run : answer.runs) {
    const auto index = static_cast<size_t>(run.run);
    if (index >= runs.size() || runs[index].variant == kRefIndex) continue;
    const bool counts = runs[index].variant == kCountIndex;
    const char* name = counts ? "COUNT" : "TRACE";
    if (OutcomeOf(run) == RunOutcome::kNotRun)
      return RefusedHere(known, absl::StrCat("a shadow has no time for ", name,
                                             " behind the loop itself; a larger budget.shadow "
                                             "has"));
    if (!run.ok) return RepeatFailed(known, name, run.failure);
    out->longest = std::max(out->longest, run.iterations);
    out->each = std::max(out->each, run.iterations / run.instances);
    const auto thread = static_cast<size_t>(run.thread);
    if (thread >= out->threads.size()) continue;
    uint64_t& whole = out->threads[thread].whole_iterations;
    whole = std::max(whole, run.iterations);
    if (!counts) out->threads[thread].traced_iterations = run.iterations;
  }
  return std::nullopt;
}

// What runs would write must be known, and little enough to be brought back.
std::optional<std::string> WhyNotRepeatable(const TraceSummary& trace) {
  if (trace.untraced) return "an instruction writes memory at addresses that cannot be traced";
  if (!trace.in_situ) return std::nullopt;
  if (trace.written.size() > kMaxRestores)
    return absl::StrCat("it writes ", trace.written.size(), " ranges of memory; at most ",
                        kMaxRestores, " are restored");
  if (trace.written_bytes > kMostRestored)
    return absl::StrFormat("it updates %.0f MB in place; at most %d MB are restored between runs",
                           static_cast<double>(trace.written_bytes) / (1 << 20),
                           static_cast<int>(kMostRestored >> 20));
  return std::nullopt;
}

std::optional<StepOutcome> CheckLength(LoopKnowledge& known, const Passes& passes) {
  if (passes.longest < kTraceIterations) return std::nullopt;
  if (known.batch.instances > 0) {
    ShortenBatch(known, passes.each, kTraceIterations / 2);
    return Learned();
  }
  if (!known.probe.trace_alone) return std::nullopt;
  return Ended(MeasureState::kRefused,
               absl::StrCat("it changes what it depends on, and makes more than ", kTraceIterations,
                            " passes: what to restore between runs is not known"));
}

}  // namespace

std::vector<RunSpec> ProbeRuns(const LoopKnowledge& known) {
  std::vector<RunSpec> runs = {{.variant = kTraceIndex, .iteration_limit = kTraceIterations}};
  if (!known.probe.trace_alone)
    runs.insert(runs.begin(), {{.variant = kRefIndex}, {.variant = kCountIndex}});
  return runs;
}

StepOutcome LearnProbe(LoopKnowledge& known, const ShadowAnswer& answer,
                       const std::vector<RunSpec>& runs) {
  if (!known.probe.trace_alone) {
    if (TeamCycles(answer, 0) == 0) return RefFailed(known, answer);
    known.runs.cycles = WarmCycles(answer);
  }
  Passes passes;
  if (auto end = CountPasses(known, answer, runs, &passes)) return *end;
  if (LearnEarlyEnd(known, answer, runs)) return Learned();
  if (auto end = CheckLength(known, passes)) return *end;
  if (auto end = CheckStretch(known, answer, passes.longest)) return *end;
  for (size_t i = 0; i < passes.threads.size(); ++i) passes.threads[i].records = answer.traces[i];
  known.trips.counts.push_back(passes.each);
  known.probe.trace =
      SummarizeTrace(CopyOf(known, kTraceIndex).references, passes.threads, known.setup.bias);
  if (auto why = WhyNotRepeatable(known.probe.trace)) return RefusedHere(known, *why);
  ChooseApart(known);
  known.trim.record.clear();
  known.protocol.new_placements = MayUseNewPlacements(known);
  return Learned();
}

}  // namespace perfd::agent
