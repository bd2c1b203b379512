// Recovery mode of a LoopExperiment: copies run in the rank itself, one at an entry (RankInjector::Recover). For instances so short
// that a shadow, which runs one of them over and over, only shows what the branch predictor has learnt of it.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/experiment/loop_experiment.h"
#include "agent/shadow/recovery_plan.h"
#include "core/analysis/cluster_median.h"

namespace perfd::agent {
namespace {

constexpr double kLongestInSituNs =
    10'000;  // of an instance; longer ones are measured well in shadows
constexpr double kFirstInSituNs = 3'000;     // of a run besides its instance, until it is known
constexpr int32_t kRoundsPerRepetition = 4;  // single runs of short instances scatter a lot
constexpr int32_t kLeastRounds = 4;
constexpr size_t kMostSamples = 100'000;
constexpr uint32_t kMostArmings = 64;

std::string InShadows(absl::string_view why) {
  return absl::StrCat(why, "; measured in shadows");
}

bool MayRun(const InstalledLoop& loop, int32_t copy) {
  const auto at = static_cast<size_t>(copy);
  return at < loop.in_situ_copies.size() && loop.in_situ_copies[at];
}

}  // namespace

// Copies that may not run in the rank itself, nor whose base may.
std::vector<Refusal> LoopExperiment::NotInSitu() const {
  std::vector<Refusal> refusals;
  for (size_t i = 0; i < installed_.names.size(); ++i) {
    const auto copy = static_cast<int32_t>(i);
    if (IsTripCheck(copy)) continue;
    if (!MayRun(installed_, copy) || !MayRun(installed_, BaseOf(copy)))
      refusals.push_back(
          {installed_.names[i].Text(), 0, "its copy may not run in the rank itself", 1});
  }
  return refusals;
}

void LoopExperiment::PredictMode(LoopMeasurement& out) const {
  if (!setup_.recovery || out.state == MeasureState::kRefused) return;
  if (!installed_.in_situ.ok()) {
    out.refusals.push_back({"in place", 0, InShadows(installed_.in_situ.message()), 1});
    return;
  }
  out.protocol = kInSituProtocol;
  const std::vector<Refusal> not_in_situ = NotInSitu();
  out.refusals.insert(out.refusals.end(), not_in_situ.begin(), not_in_situ.end());
}

void LoopExperiment::ChooseMode() {
  if (!setup_.recovery || in_situ_ || !mode_refusals_.empty()) return;
  std::string why(installed_.in_situ.message());
  if (installed_.in_situ.ok() && InstanceNs() > kLongestInSituNs)
    why = absl::StrFormat("an instance takes %.0f us, which shadows measure well",
                          InstanceNs() / 1e3);
  in_situ_ = why.empty();
  mode_refusals_ =
      in_situ_ ? NotInSitu() : std::vector<Refusal>{{"in place", 0, InShadows(why), 1}};
}

int64_t LoopExperiment::InSituNs() const {
  const double besides = in_situ_ns_ > 0 ? in_situ_ns_ : kFirstInSituNs;
  return static_cast<int64_t>(InstanceNs() + besides) + 1;
}

int64_t LoopExperiment::LeastInSitu() const {
  const auto runs = static_cast<int64_t>(InSituRound().size()) * kLeastRounds;
  return runs * std::max(1, entry_count_.team) * InSituNs();
}

// The loop alone, then every missing variant between two runs of its base; one run counts passes.
std::vector<int32_t> LoopExperiment::InSituRound() const {
  std::vector<std::pair<int32_t, int32_t>> wanted;  // base, variant
  for (const std::string& name : Missing()) {
    const int32_t variant = IndexOf(name);
    if (MayRun(installed_, variant) && MayRun(installed_, BaseOf(variant)))
      wanted.emplace_back(BaseOf(variant), variant);
  }
  // Another start each time, so that neighbours do not stay the same.
  if (!wanted.empty()) {
    const auto turn = static_cast<std::ptrdiff_t>(shadows_ % wanted.size());
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
  if (MayRun(installed_, kCountIndex)) round.push_back(kCountIndex);
  return round;
}

void LoopExperiment::KeepInSitu(const RecoveryAnswer& answer, const std::vector<int32_t>& round) {
  uint32_t next = clusters_;
  std::map<uint32_t, uint64_t> alone,
      ref;  // by cluster; the first run of REF comes right after the loop alone
  for (const RecoveryRun& run : answer.runs) {
    const auto step = static_cast<size_t>(run.step);
    if (step >= round.size()) continue;
    next = std::max(next, clusters_ + run.cluster + 1);
    if (round[step] == kNoCopy) {
      probes_.push_back(run.cycles);
      if (run.original > 0) alone[run.cluster] = run.original;
      continue;
    }
    if (round[step] == kRefIndex) ref.emplace(run.cluster, run.cycles);
    if (round[step] == kCountIndex) trips_.push_back(run.iterations);
    RunSample sample;
    sample.shadow = clusters_ + run.cluster;
    sample.order = static_cast<uint32_t>(run.step);
    sample.thread = run.thread;
    sample.variant = installed_.names[static_cast<size_t>(round[step])].Text();
    sample.cycles = static_cast<double>(run.cycles);
    sample.iterations = round[step] == kCountIndex ? run.iterations : 0;
    runs_.push_back(std::move(sample));
  }
  clusters_ = next;
  probe_cycles_ = static_cast<double>(Median(probes_));
  // The same instance is never timed twice: those of one length are compared.
  for (const auto& [cluster, own] : alone) {
    const auto found = ref.find(cluster);
    if (found == ref.end()) continue;
    const double copy = static_cast<double>(found->second) - probe_cycles_;
    if (copy > 0) likeness_.push_back(copy / static_cast<double>(own));
  }
}

// In units of REF's own time, so that fidelity is what was found for instances of equal length.
void LoopExperiment::CompareWithLive() {
  if (likeness_.empty() || run_cycles_ <= 0) return;
  live_.clear();
  for (const double likeness : likeness_)
    live_.push_back(static_cast<uint64_t>(run_cycles_ / likeness));
  live_cycles_ = static_cast<double>(Median(live_));
}

StepCost LoopExperiment::Recover(RankInjector& injector, const StepRoom& room) {
  RecoveryRequest request;
  request.loop = setup_.loop_to_inject;
  request.round = InSituRound();
  request.timeout_ns = room.timeout_ns;
  const int64_t bought = room.credit_ns / InSituNs();
  const int64_t rounds = int64_t{kRoundsPerRepetition} * std::max(1, setup_.repetitions);
  const int64_t wanted =
      rounds * static_cast<int64_t>(request.round.size()) * std::max(1, entry_count_.team);
  request.runs = static_cast<int32_t>(
      std::clamp<int64_t>(std::min(wanted, bought), 1, int64_t{kMostRecoveries}));
  const int64_t predicted = request.runs * InSituNs();
  request.most_added_ns = predicted;
  absl::StatusOr<RecoveryAnswer> answer = injector.Recover(request);
  if (!answer.ok()) {
    Fail(answer.status());
    return {};
  }
  failures_ = 0;
  ++shadows_;
  cost_.recoveries += answer->runs.size();
  cost_.recovery_ns += answer->added_ns;
  if (!answer->runs.empty()) {
    const double each =
        static_cast<double>(answer->added_ns) / static_cast<double>(answer->runs.size());
    in_situ_ns_ = std::max(1.0, each * std::max(1, entry_count_.team) - InstanceNs());
  }
  KeepInSitu(*answer, request.round);
  Reduce();
  CompareWithLive();
  const bool enough = shadows_ >= kMostArmings || runs_.size() >= kMostSamples;
  if (Missing().empty() || enough) Finish(MeasureState::kMeasured, "");
  // Nothing stands still: the rank only goes slower for a while.
  return {.later_ns = answer->added_ns, .predicted_ns = predicted};
}

void LoopExperiment::DescribeMode(LoopMeasurement& out) const {
  for (const auto* refusals : {&mode_refusals_, &batch_refusals_})
    out.refusals.insert(out.refusals.end(), refusals->begin(), refusals->end());
  if (!in_situ_ || shadows_ == 0) return;
  out.protocol = kInSituProtocol;
  out.provenance = Provenance::kLive;
}

}  // namespace perfd::agent
