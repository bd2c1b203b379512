#include "agent/experiment/loop/apart.h"

#include <algorithm>
#include <map>
#include <optional>

#include "agent/experiment/loop/figures.h"
#include "agent/experiment/plan/run_schedule.h"

namespace perfd::agent {
namespace {

constexpr char kApart[] = "apart";

const TracedReference* Find(const TraceSummary& trace, uint64_t instruction, LoadBias bias) {
  const uint64_t listed = (RuntimeAddress(instruction) - bias).value();
  const auto found =
      std::find_if(trace.references.begin(), trace.references.end(),
                   [listed](const TracedReference& r) { return r.instruction == listed; });
  return found == trace.references.end() ? nullptr : &*found;
}

bool IsNotExecuted(const TraceSummary& trace, uint64_t instruction, LoadBias bias) {
  const uint64_t listed = (RuntimeAddress(instruction) - bias).value();
  return std::find(trace.not_executed.begin(), trace.not_executed.end(), listed) !=
         trace.not_executed.end();
}

// The last trace, of the loop itself, has as many passes as the counted run: all runs of the shadow make the same ones.
bool IsTracedWhole(const LoopKnowledge& known, const ShadowAnswer& answer,
                   const std::vector<RunSpec>& runs) {
  std::map<int32_t, uint64_t> counted, traced;  // by thread
  for (const ShadowRun& result : answer.runs) {
    const RunSpec& spec = runs[static_cast<size_t>(result.run)];
    if (!result.ok) continue;
    if (spec.variant == kCountIndex) counted[result.thread] = result.iterations;
    if (spec.variant == kTraceIndex && !spec.baseline) traced[result.thread] = result.iterations;
  }
  return traced == counted && traced.size() == static_cast<size_t>(ShadowTeam(known));
}

// Of accesses that the probe's instances did not execute.
bool TakesOtherPaths(const LoopKnowledge& known, const ShadowAnswer& answer) {
  const std::vector<Reference>& references = CopyOf(known, kTraceIndex).references;
  for (const std::vector<TraceRecord>& records : answer.traces) {
    for (size_t i = 0; i < std::min(records.size(), references.size()); ++i) {
      if (records[i].count != 0 &&
          IsNotExecuted(known.probe.trace, references[i].instruction, known.setup.bias))
        return true;
    }
  }
  return answer.traces.size() < static_cast<size_t>(ShadowTeam(known));
}

// Passes of the loop's own trace, over all threads; none: it did not come to its end.
std::optional<uint64_t> PassesOf(const ShadowAnswer& answer, size_t run, int32_t team) {
  uint64_t passes = 0;
  int32_t threads = 0;
  for (const ShadowRun& result : answer.runs) {
    if (static_cast<size_t>(result.run) != run || !result.ok) continue;
    passes += result.iterations;
    ++threads;
  }
  return threads == team ? std::optional(passes) : std::nullopt;
}

bool Differs(const ShadowAnswer& answer, size_t run) {
  return std::any_of(answer.runs.begin(), answer.runs.end(), [run](const ShadowRun& result) {
    return static_cast<size_t>(result.run) == run && result.differs;
  });
}

// Faults and endless runs are the copy's own; one that was not run shows nothing.
bool Failed(const ShadowAnswer& answer, size_t run) {
  return std::any_of(answer.runs.begin(), answer.runs.end(), [run](const ShadowRun& result) {
    const RunOutcome outcome = OutcomeOf(result);
    return static_cast<size_t>(result.run) == run && outcome != RunOutcome::kOk &&
           outcome != RunOutcome::kNotRun;
  });
}

void Withdraw(LoopKnowledge& known, const std::string& why) {
  known.apart = {};
  known.apart.refusals = {{kApart, 0, why + ": all variants keep whatever might", 1}};
  known.trips.checked.clear();
  known.trips.refusals.clear();
  ForgetRuns(known);
}

}  // namespace

Apartness ShownApart(const TraceSummary& trace, std::span<const AccessPair> pairs, LoadBias bias) {
  Apartness all = Apartness::kApart;
  for (const AccessPair& pair : pairs) {
    const TracedReference* const store = Find(trace, pair.store, bias);
    const TracedReference* const load = Find(trace, pair.load, bias);
    if (IsNotExecuted(trace, pair.store, bias) || IsNotExecuted(trace, pair.load, bias)) {
      all = Apartness::kUnlessTaken;
    } else if (store == nullptr || load == nullptr ||
               (store->highest > load->lowest && load->highest > store->lowest)) {
      return Apartness::kMayMeet;
    }
  }
  return all;
}

void ChooseApart(LoopKnowledge& known) {
  const std::optional<ApartCopies>& set = ApartCopiesOf(known);
  if (!set || !known.apart.refusals.empty()) return;
  const std::vector<VariantName>& names = known.installed.names;
  std::vector<bool> usable(names.size());
  std::vector<Apartness> shown(names.size(), Apartness::kMayMeet);
  for (size_t i = static_cast<size_t>(kTraceIndex) + 1; i < names.size(); ++i) {
    const absl::StatusOr<CodeCopy>& copy = set->copies[i];
    const bool can_check = Counts(names[i]) || set->traced[i].ok();
    if (!copy.ok() || !can_check) continue;
    shown[i] = ShownApart(known.probe.trace, copy->pairs.taken_apart, known.setup.bias);
    // What is cut short does not show that a path is not taken.
    usable[i] = shown[i] == Apartness::kApart ||
                (shown[i] == Apartness::kUnlessTaken && !known.probe.trace.partial);
  }
  // A variant is compared with a base of its own form, and counted in it.
  for (size_t i = static_cast<size_t>(kTraceIndex) + 1; i < names.size(); ++i) {
    if (!usable[i]) continue;
    const int32_t base = IndexOf(known, set->copies[i]->base.Text());
    const int32_t counted = IndexOf(known, Counted(names[i]).Text());
    const auto stands = [&](int32_t at) {
      return at <= kTraceIndex || usable[static_cast<size_t>(at)];
    };
    usable[i] = base >= 0 && stands(base) && (Counts(names[i]) || stands(counted));
  }
  // A counted copy stands for the variant that is timed.
  for (size_t i = static_cast<size_t>(kTraceIndex) + 1; i < names.size(); ++i) {
    const int32_t counted = IndexOf(known, Counted(names[i]).Text());
    if (counted >= 0 && !usable[i]) usable[static_cast<size_t>(counted)] = false;
  }
  if (std::find(usable.begin(), usable.end(), true) == usable.end()) return;
  for (size_t i = 0; i < usable.size(); ++i)
    known.apart.rests_on_paths |= usable[i] && shown[i] == Apartness::kUnlessTaken;
  known.apart.usable = std::move(usable);
}

std::vector<RunSpec> AddressChecks(const LoopKnowledge& known,
                                   const std::vector<int32_t>& variants) {
  const bool restore = known.probe.trace.in_situ;
  const auto is_apart = [&](int32_t variant) { return FormOf(known, variant) != CopyForm::kUsual; };
  std::vector<RunSpec> runs;
  for (const int32_t variant : variants) {
    const VariantName& name = known.installed.names[static_cast<size_t>(variant)];
    if (!is_apart(variant) || known.apart.checked.contains(name.Text())) continue;
    if (runs.empty())
      runs.push_back({.variant = kTraceIndex,
                      .restore = restore,
                      .baseline = true,
                      .iteration_limit = kTraceIterations});
    runs.push_back({.variant = variant,
                    .form = CopyForm::kApartTraced,
                    .restore = restore,
                    .iteration_limit = kTraceIterations});
  }
  // Last, so that its trace is what the shadow answers.
  const bool concerned = std::any_of(variants.begin(), variants.end(), [&](int32_t variant) {
    return is_apart(variant) || is_apart(BaseOf(known, variant));
  });
  if (known.apart.rests_on_paths && concerned)
    runs.push_back(
        {.variant = kTraceIndex, .restore = restore, .iteration_limit = kTraceIterations});
  return runs;
}

bool CheckPaths(LoopKnowledge& known, const ShadowAnswer& answer,
                const std::vector<RunSpec>& runs) {
  const bool concerned = std::any_of(runs.begin(), runs.end(), [&](const RunSpec& run) {
    return FormOf(known, run.variant) == CopyForm::kApart;
  });
  if (!concerned || !known.apart.rests_on_paths) return true;
  if (IsTracedWhole(known, answer, runs) && !TakesOtherPaths(known, answer)) {
    known.apart.other_paths = 0;
    return true;
  }
  const std::string why = "an instance took a path that the probe's did not: its runs do not count";
  if (known.apart.refusals.empty()) known.apart.refusals.push_back({kApart, 0, why, 0});
  ++known.apart.refusals.front().count;
  constexpr int32_t kMostOtherPaths = 3;
  if (++known.apart.other_paths >= kMostOtherPaths)
    Withdraw(known, "what a path that is seldom taken reads may reach a branch or an address");
  return false;
}

bool CheckAddresses(LoopKnowledge& known, const ShadowAnswer& answer,
                    const std::vector<RunSpec>& runs) {
  const int32_t team = ShadowTeam(known);
  std::optional<uint64_t> expected;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].baseline) expected = PassesOf(answer, i, team);
    if (runs[i].form != CopyForm::kApartTraced) continue;
    const std::string name = known.installed.names[static_cast<size_t>(runs[i].variant)].Text();
    const std::optional<uint64_t> passes = PassesOf(answer, i, team);
    const bool compared = expected && passes;
    if (compared && *passes == *expected && !Differs(answer, i)) {
      known.apart.checked.insert(name);
      continue;
    }
    if (compared || (expected && Failed(answer, i))) {
      Withdraw(known, name + " takes away what does reach a branch or an address of the loop");
      return false;
    }
    // What could not be held against the loop does not count.
    std::erase_if(known.runs.samples, [&](const RunSample& run) { return run.variant == name; });
  }
  return true;
}

}  // namespace perfd::agent
