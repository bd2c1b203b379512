#include "agent/experiment/loop/apart.h"

#include <algorithm>
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

void Withdraw(LoopKnowledge& known, const std::string& variant) {
  known.apart = {};
  known.apart.refusals = {{kApart, 0,
                           variant +
                               " takes away what does reach a branch or an address of the loop: "
                               "all variants keep whatever might",
                           1}};
  known.trips.checked.clear();
  known.trips.refusals.clear();
  ForgetRuns(known);
}

}  // namespace

bool ShownApart(const TraceSummary& trace, std::span<const AccessPair> pairs, LoadBias bias) {
  return std::all_of(pairs.begin(), pairs.end(), [&](const AccessPair& pair) {
    const TracedReference* const store = Find(trace, pair.store, bias);
    const TracedReference* const load = Find(trace, pair.load, bias);
    return store != nullptr && load != nullptr &&
           (store->highest <= load->lowest || load->highest <= store->lowest);
  });
}

void ChooseApart(LoopKnowledge& known) {
  const std::optional<ApartCopies>& set = ApartCopiesOf(known);
  if (!set || !known.apart.refusals.empty()) return;
  const std::vector<VariantName>& names = known.installed.names;
  std::vector<bool> usable(names.size());
  for (size_t i = static_cast<size_t>(kTraceIndex) + 1; i < names.size(); ++i) {
    const absl::StatusOr<CodeCopy>& copy = set->copies[i];
    const bool can_check = Counts(names[i]) || set->traced[i].ok();
    usable[i] = copy.ok() && can_check &&
                ShownApart(known.probe.trace, copy->taken_apart, known.setup.bias);
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
  if (std::find(usable.begin(), usable.end(), true) == usable.end()) return;
  known.apart.usable = std::move(usable);
}

std::vector<RunSpec> AddressChecks(const LoopKnowledge& known,
                                   const std::vector<int32_t>& variants) {
  const bool restore = known.probe.trace.in_situ;
  std::vector<RunSpec> runs;
  for (const int32_t variant : variants) {
    const VariantName& name = known.installed.names[static_cast<size_t>(variant)];
    if (FormOf(known, variant) == CopyForm::kUsual || known.apart.checked.contains(name.Text()))
      continue;
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
  return runs;
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
      Withdraw(known, name);
      return false;
    }
    // What could not be held against the loop does not count.
    std::erase_if(known.runs.samples, [&](const RunSample& run) { return run.variant == name; });
  }
  return true;
}

}  // namespace perfd::agent
