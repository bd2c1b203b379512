// What a loop's first shadow tells: whether it can run in one at all, how long an instance is, what it reads and writes.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/experiment/loop_experiment.h"
#include "agent/shadow/protocol.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kTraceIterations =
    20'000;  // with records of some 10 ns each well below a millisecond
constexpr uint64_t kMostRestored = 64u << 20;
constexpr uint64_t kLeastStretch =
    4;  // passes between two detours; fewer are mostly entry and exit
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

// REF, the first run of a look, also copies the pages it writes; COUNT after it finds them copied.
double WarmCycles(const ShadowAnswer& answer) {
  const uint64_t ref = TeamCycles(answer, 0), count = TeamCycles(answer, 1);
  return static_cast<double>(count == 0 ? ref : std::min(ref, count));
}

std::string FirstFailure(const ShadowAnswer& answer, int32_t run) {
  for (const ShadowRun& result : answer.runs) {
    if (result.run == run && !result.ok) return result.failure;
  }
  return answer.outcome;
}

}  // namespace

StepCost LoopExperiment::Probe(RankInjector& injector, const StepRoom& room) {
  std::vector<RunSpec> runs = {{.variant = kTraceIndex, .iteration_limit = kTraceIterations}};
  if (!trace_alone_) runs.insert(runs.begin(), {{.variant = kRefIndex}, {.variant = kCountIndex}});
  ShadowAnswer answer;
  StepCost cost = RunShadow(injector, room, runs, false, &answer);
  if (cost.pause_ns == 0 || stage_ == Stage::kDone) return cost;
  if (room.trim && MissedMemory(answer)) return cost;
  if (!trace_alone_) {
    if (TeamCycles(answer, 0) == 0) {
      RefFailed(FirstFailure(answer, 0));
      return cost;
    }
    run_cycles_ = WarmCycles(answer);
  }
  if (!LearnTrace(answer, runs)) return cost;
  // What it writes is known only now; a prediction without those copies must not make all later ones look too low.
  cost.predicted_ns = PredictedNs(room.prediction, runs.size());
  stage_ = Stage::kMeasure;
  trim_record_.clear();
  OpenSites();
  if (Missing().empty()) Finish(MeasureState::kMeasured, "");
  return cost;
}

// The fork may have taken all of the pause: the next one is predicted by it.
void LoopExperiment::RefFailed(const std::string& failure) {
  if (!absl::StartsWith(failure, "not run")) {
    return Finish(MeasureState::kRefused,
                  absl::StrCat("the unchanged loop cannot run in a shadow: ", failure));
  }
  if (++short_probes_ < kMostShortProbes) return;
  Finish(MeasureState::kOpen,
         absl::StrCat("a shadow's time was over before the loop ran in it: ", failure));
}

// A second run began from what the first one left in memory. Some loops cannot bear that: they are traced in a shadow of its
// own, and restored between runs from then on.
void LoopExperiment::RepeatFailed(const char* variant, const std::string& failure) {
  if (!AcceptsBatch(absl::StrCat(variant, " failed: ", failure))) return;
  if (trace_alone_) Finish(MeasureState::kRefused, absl::StrCat(variant, " failed: ", failure));
  trace_alone_ = true;
}

// Few passes of a loop with detours: either it goes over one of them nearly every time, or its instances are that short by
// themselves, as those of loops without detours may be. Which of the two, several instances tell by how they end.
bool LoopExperiment::IsStretch(const ShadowAnswer& answer, uint64_t passes) {
  if (installed_.excluded_paths.empty() || passes >= kLeastStretch) return true;
  const std::vector<bool>& left = answer.left_by_excluded_path;
  short_by_excluded_path_ =
      short_by_excluded_path_ || std::find(left.begin(), left.end(), true) != left.end();
  if (++short_probes_ < kMostShortProbes) return false;
  if (short_by_excluded_path_) {
    Finish(MeasureState::kRefused,
           absl::StrCat("nearly every pass goes over ", installed_.excluded_paths.front(),
                        ", which no copy can hold"));
  }
  return !short_by_excluded_path_;
}

// What a chain cannot have is no fault of the loop. Always false.
bool LoopExperiment::Refuse(const std::string& why) {
  if (AcceptsBatch(why)) Finish(MeasureState::kRefused, why);
  return false;
}

bool LoopExperiment::LearnTrace(const ShadowAnswer& answer, const std::vector<RunSpec>& runs) {
  std::vector<ThreadTrace> threads(answer.traces.size());
  uint64_t longest = 0, each = 0;  // of a run, and of an instance
  for (const ShadowRun& run : answer.runs) {
    const auto index = static_cast<size_t>(run.run);
    if (index >= runs.size() || runs[index].variant == kRefIndex) continue;
    const bool counts = runs[index].variant == kCountIndex;
    if (!run.ok && absl::StartsWith(run.failure, "not run: time was up")) {
      return Refuse(absl::StrCat("a shadow has no time for ", counts ? "COUNT" : "TRACE",
                                 " behind the loop itself; a larger budget.shadow has"));
    }
    if (!run.ok) {
      RepeatFailed(counts ? "COUNT" : "TRACE", run.failure);
      return false;
    }
    longest = std::max(longest, run.iterations);
    each = std::max(each, run.iterations / run.instances);
    const auto thread = static_cast<size_t>(run.thread);
    if (thread >= threads.size()) continue;
    uint64_t& whole = threads[thread].whole_iterations;
    whole = std::max(whole, run.iterations);
    if (!counts) threads[thread].traced_iterations = run.iterations;
  }
  if (LeftEarly(answer, runs)) return false;
  if (instances_ > 0 && longest >= kTraceIterations)
    return ShortenBatch(each, kTraceIterations / 2);
  if (trace_alone_ && longest >= kTraceIterations) {
    Finish(MeasureState::kRefused,
           absl::StrCat("it changes what it depends on, and makes more than ", kTraceIterations,
                        " passes: what to restore between runs is not known"));
    return false;
  }
  if (!IsStretch(answer, longest)) return false;
  trips_.push_back(each);
  for (size_t i = 0; i < threads.size(); ++i) threads[i].records = answer.traces[i];
  trace_ = SummarizeTrace(CopyOf(kTraceIndex).references, threads, setup_.bias);
  if (trace_.untraced)
    return Refuse("an instruction writes memory at addresses that cannot be traced");
  if (trace_.in_situ && trace_.written.size() > kMaxRestores)
    return Refuse(absl::StrCat("it writes ", trace_.written.size(), " ranges of memory; at most ",
                               kMaxRestores, " are restored"));
  if (trace_.in_situ && trace_.written_bytes > kMostRestored)
    return Refuse(
        absl::StrFormat("it updates %.0f MB in place; at most %d MB are restored between runs",
                        static_cast<double>(trace_.written_bytes) / (1 << 20),
                        static_cast<int>(kMostRestored >> 20)));
  return true;
}

}  // namespace perfd::agent
