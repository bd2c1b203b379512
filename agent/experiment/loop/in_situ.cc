#include "agent/experiment/loop/in_situ.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/shadow/recovery_plan.h"

namespace perfd::agent {
namespace {

constexpr double kLongestInSituNs =
    10'000;  // of an instance; longer ones are measured well in shadows
constexpr double kFirstInSituNs = 3'000;  // of a run besides its instance, until it is known
constexpr int32_t kLeastRounds = 4;

std::string InShadows(absl::string_view why) {
  return absl::StrCat(why, "; measured in shadows");
}

bool MayRun(const InstalledLoop& loop, int32_t copy) {
  const auto at = static_cast<size_t>(copy);
  return at < loop.in_situ_copies.size() && loop.in_situ_copies[at];
}

bool MayRunWithBase(const LoopKnowledge& known, int32_t copy) {
  return MayRun(known.installed, copy) && MayRun(known.installed, BaseOf(known, copy));
}

// Copies that may not run in the rank itself, nor whose base may.
std::vector<Refusal> NotInSitu(const LoopKnowledge& known) {
  std::vector<Refusal> refusals;
  for (size_t i = 0; i < known.installed.names.size(); ++i) {
    const auto copy = static_cast<int32_t>(i);
    if (IsTripCheck(known, copy) || MayRunWithBase(known, copy)) continue;
    refusals.push_back(
        {known.installed.names[i].Text(), 0, "its copy may not run in the rank itself", 1});
  }
  return refusals;
}

}  // namespace

void PredictMode(const LoopKnowledge& known, LoopMeasurement& out) {
  if (!known.setup.recovery || out.state == MeasureState::kRefused) return;
  if (!known.installed.in_situ.ok()) {
    out.refusals.push_back({"in place", 0, InShadows(known.installed.in_situ.message()), 1});
    return;
  }
  out.protocol = kInSituProtocol;
  const std::vector<Refusal> not_in_situ = NotInSitu(known);
  out.refusals.insert(out.refusals.end(), not_in_situ.begin(), not_in_situ.end());
}

void ChooseMode(LoopKnowledge& known) {
  InSituState& state = known.in_situ;
  if (!known.setup.recovery || state.on || !state.refusals.empty()) return;
  std::string why(known.installed.in_situ.message());
  if (known.installed.in_situ.ok() && InstanceNs(known) > kLongestInSituNs)
    why = absl::StrFormat("an instance takes %.0f us, which shadows measure well",
                          InstanceNs(known) / 1e3);
  state.on = why.empty();
  state.refusals =
      state.on ? NotInSitu(known) : std::vector<Refusal>{{"in place", 0, InShadows(why), 1}};
}

int64_t InSituNs(const LoopKnowledge& known) {
  const double besides = known.in_situ.besides_ns > 0 ? known.in_situ.besides_ns : kFirstInSituNs;
  return static_cast<int64_t>(InstanceNs(known) + besides) + 1;
}

int64_t LeastInSituNs(const LoopKnowledge& known) {
  const auto runs = static_cast<int64_t>(InSituRound(known).size()) * kLeastRounds;
  return runs * TeamOf(known) * InSituNs(known);
}

std::vector<int32_t> InSituRound(const LoopKnowledge& known) {
  std::vector<std::pair<int32_t, int32_t>> wanted;  // base, variant
  for (const std::string& name : known.runs.missing) {
    const int32_t variant = IndexOf(known, name);
    if (MayRunWithBase(known, variant)) wanted.emplace_back(BaseOf(known, variant), variant);
  }
  // Another start each time, so that neighbours do not stay the same.
  if (!wanted.empty()) {
    const auto turn = static_cast<std::ptrdiff_t>(known.shadows.count % wanted.size());
    std::rotate(wanted.begin(), wanted.begin() + turn, wanted.end());
  }
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  // The loop itself, with which the live one is compared, is there whatever the bases are.
  std::vector<int32_t> round = {kNoCopy, kRefIndex};
  for (const auto& [base, variant] : wanted) {
    if (round.back() != base) round.push_back(base);
    round.push_back(variant);
    round.push_back(base);
  }
  if (MayRun(known.installed, kCountIndex)) round.push_back(kCountIndex);
  return round;
}

void DescribeMode(const LoopKnowledge& known, LoopMeasurement& out) {
  for (const auto* refusals : {&known.in_situ.refusals, &known.batch.refusals})
    out.refusals.insert(out.refusals.end(), refusals->begin(), refusals->end());
  if (!known.in_situ.on || known.shadows.count == 0) return;
  out.protocol = kInSituProtocol;
  out.provenance = Provenance::kLive;
}

}  // namespace perfd::agent
