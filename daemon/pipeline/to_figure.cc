// Profiles as metrics show them.
#include "daemon/pipeline/to_figure.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/analysis/imbalance.h"
#include "core/analysis/jobs/history.h"
#include "core/analysis/memory/memory_figures.h"
#include "core/base/clock.h"
#include "daemon/report/share_of.h"

namespace perfd::daemon {
namespace {

// Indexed by MeasureState.
constexpr std::array<const char*, 4> kMeasureStates = {"open", "measured", "refused",
                                                       "never_entered"};
// Combinations and array groups are in the report: here they would be series without bound.
constexpr std::array<absl::string_view, 9> kShownVariants = {
    "LS", "FP", "DL1", "NO_DIV", "NO_SQRT", "NO_RED", "S2L", "NO_STORE", "CTRL"};

double Seconds(int64_t ns) {
  return static_cast<double>(ns) / static_cast<double>(kNsPerSecond);
}

ProgressFigure ToProgress(const ProfileStatus& status) {
  ProgressFigure progress;
  progress.state = ProfileStateName(status.state);
  progress.samples = status.samples;
  progress.nodes = status.nodes.size();
  for (const NodeProgress& node : status.nodes) {
    progress.ranks += static_cast<uint64_t>(std::max(node.ranks, 0));
    progress.threads += static_cast<uint64_t>(std::max(node.threads, 0));
  }
  progress.progress_ratio = status.course.progress_ratio;
  progress.budget_ratio = status.spec.budget.overhead_ratio;
  progress.submitted_seconds = Seconds(status.submitted_unix_ns);
  progress.finished_seconds = Seconds(status.finished_unix_ns);
  return progress;
}

// Of the threads of the rank that has most of the loop.
double ThreadImbalance(const ReportRow& row) {
  const auto most = std::max_element(
      row.ranks.begin(), row.ranks.end(),
      [](const RankShare& a, const RankShare& b) { return a.seconds < b.seconds; });
  if (most == row.ranks.end()) return 1;
  std::vector<double> samples;
  for (const ThreadShare& share : row.threads) {
    if (share.thread.node == most->node && share.thread.rank == most->rank)
      samples.push_back(static_cast<double>(share.samples));
  }
  return SpreadOf(samples).imbalance;
}

void AddGain(const Gain& gain, MeasuredFigure& measured) {
  measured.gain_ratio = gain.of_job.value;
  if (gain.ranks.asked > 0)
    measured.gain_ranks_ratio = static_cast<double>(gain.ranks.measured) / gain.ranks.asked;
}

MemoryFigure ToMemory(const MemoryFigures& figures) {
  MemoryFigure out;
  const BeyondShare& beyond = figures.beyond[static_cast<size_t>(MemoryBorder::kL2)];
  if (beyond.why_not == NoShare::kNone) out.beyond_l2_ratio = beyond.share;
  const MemoryProfile& profile = figures.profile;
  if (TellsOfTlb(profile))
    out.walks_ratio =
        RatioOf(profile.tlb[static_cast<size_t>(TlbResult::kWalk)].weight, profile.all.weight);
  return out;
}

void AddMemory(const MemoryReport& memory, ProfileFigure& figure) {
  std::map<absl::string_view, const MemoryPlace*> places;
  for (const MemoryPlace& place : memory.places) places.emplace(place.id, &place);
  for (LoopFigure& loop : figure.loops) {
    const auto place = places.find(loop.loop);
    if (place != places.end()) loop.memory = ToMemory(place->second->figures);
  }
}

}  // namespace

ProfileFigure ToFigure(const ProfileStatus& status, const std::vector<ReportRow>& loops,
                       size_t count) {
  ProfileFigure figure{
      .id = status.id, .name = status.name, .user = status.requester.name, .loops = {}};
  const TargetSpec& target = status.spec.target;
  figure.command = target.command.value_or("");
  if (target.slurm_job.has_value()) figure.slurm_job = absl::StrCat(*target.slurm_job);
  figure.progress = ToProgress(status);
  for (const ReportRow& row : loops) {
    if (figure.loops.size() == count) break;
    figure.loops.push_back({.loop = row.id,
                            .function = row.location.function,
                            .file = row.location.source.file,
                            .line = row.location.source.first_line,
                            .module = row.location.module_path,
                            .share_ratio = row.share});
  }
  return figure;
}

void AddVerdicts(const std::vector<LoopVerdict>& verdicts, size_t count, ProfileFigure& figure) {
  std::array<uint64_t, kMeasureStates.size()> states{};
  for (const LoopVerdict& loop : verdicts) {
    ++states[static_cast<size_t>(loop.state)];
    if (figure.measured.size() == count || loop.variants.empty()) continue;
    MeasuredFigure measured{.loop = loop.loop_id, .gain_ratio = {}};
    measured.bound = BoundName(loop.bound);
    measured.level = DataLevelName(loop.level);
    if (!loop.gains.empty()) AddGain(loop.gains.front(), measured);
    for (const VariantSummary& v : loop.variants) {
      const bool known = std::find(kShownVariants.begin(), kShownVariants.end(), v.variant) !=
                         kShownVariants.end();
      if (known && v.ranks.measured > 0)
        measured.saturations.push_back({v.variant, v.saturation.value});
    }
    figure.measured.push_back(std::move(measured));
  }
  if (verdicts.empty()) return;
  for (size_t i = 0; i < states.size(); ++i)
    figure.measure_states.emplace_back(kMeasureStates[i], states[i]);
}

void AddOutcome(const Report& report, ProfileFigure& figure) {
  if (report.ranks.empty()) return;  // nothing is known, not even that nothing is missing
  // A job of a scheduler is asked for by its number: dashboards shall know its program all the same.
  if (figure.command.empty()) figure.command = ProgramOf(report);
  OutcomeFigure outcome;
  outcome.missing_ratio = report.missing_ratio;
  outcome.sampling_overhead_ratio = report.overhead_ratio;
  outcome.added_time_ratio = report.findings.injection.added_ratio;
  outcome.imbalance_ratio = report.imbalance;
  for (size_t i = 0; i < report.category_share.size(); ++i)
    outcome.category_shares.emplace_back(CategoryName(static_cast<Category>(i)),
                                         report.category_share[i]);
  figure.outcome = std::move(outcome);
  AddMemory(report.findings.memory, figure);
  for (size_t i = 0; i < figure.loops.size() && i < report.loops.size(); ++i) {
    const ReportRow& row = report.loops[i];  // in the same order
    figure.loops[i].spread = SpreadFigure{.rank_min_seconds = row.rank_seconds.min,
                                          .rank_median_seconds = row.rank_seconds.median,
                                          .rank_max_seconds = row.rank_seconds.max,
                                          .rank_imbalance_ratio = row.imbalance,
                                          .thread_imbalance_ratio = ThreadImbalance(row)};
  }
}

}  // namespace perfd::daemon
