#include "daemon/report/report_builder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "core/analysis/hot/hot_set.h"
#include "core/base/clock.h"
#include "daemon/report/location_row.h"
#include "daemon/report/loop_verdicts.h"
#include "daemon/report/rank_table.h"
#include "daemon/report/report_stacks.h"
#include "daemon/report/share_of.h"

namespace perfd::daemon {
namespace {

std::vector<ReportRow>& TableOf(const CodeLocation& location, Report& report) {
  if (IsWaitingLoop(location)) return report.waiting;
  if (IsComputeLoop(location)) return report.loops;
  return report.functions;
}

// When the first window with any sample began, ns since the epoch; 0: nobody knows.
int64_t FirstSampleNs(const std::vector<LocationTotals>& locations) {
  LocationTotals all;
  for (const LocationTotals& location : locations)
    all.Span(location.first_unix_ns, location.last_unix_ns);
  return all.first_unix_ns;
}

void FillSpan(const LocationTotals& location, int64_t first_sample_ns, ReportRow& row) {
  if (location.last_unix_ns == 0 && location.first_unix_ns == 0) return;
  row.seen.first_ns = location.first_unix_ns - first_sample_ns;
  row.seen.last_ns = location.last_unix_ns - first_sample_ns;
}

struct FilledRows {
  size_t left_out = 0;            // rows that did not fit
  std::vector<uint64_t> loop_ns;  // of each of the report's loops, with what it calls
  uint64_t unlisted_loop_ns = 0;
};

FilledRows FillRows(const ProfileAggregate& aggregate, const RankTable& ranks,
                    const ReportLimits& limits, Report& report) {
  const std::vector<LocationTotals>& locations = aggregate.locations();
  const PlaceTimes times(aggregate);
  const ShareBasis basis = BasisOf(aggregate);
  const int64_t first_sample_ns = FirstSampleNs(locations);
  FilledRows filled;
  for (uint32_t i : HeaviestFirst(aggregate, times)) {
    std::vector<ReportRow>& table = TableOf(locations[i].location, report);
    if (table.size() >= limits.rows) {
      ++filled.left_out;
      if (&table == &report.loops) filled.unlisted_loop_ns += times.OwnAndCalled(i, basis);
      continue;
    }
    table.push_back(times.Row(i));
    FillSpan(locations[i], first_sample_ns, table.back());
    ranks.FillRow(i, limits, table.back());
    if (&table == &report.loops) filled.loop_ns.push_back(times.OwnAndCalled(i, basis));
  }
  return filled;
}

void MarkHotLoops(const FilledRows& rows, const HotspotSpec& spec, Report& report) {
  std::vector<LoopWeight> weights;
  for (size_t i = 0; i < report.loops.size(); ++i) {
    weights.push_back({rows.loop_ns[i], report.loops[i].location.loop.has_value()});
  }
  // Rows past the limit still are loop time.
  weights.push_back({rows.unlisted_loop_ns, false});
  for (size_t i : HotSet(weights, spec.coverage_ratio, spec.max_loops)) report.loops[i].hot = true;
}

// Makes the shares add up to exactly 1 in any order: as multiples of 2^-53 they and their sums are
// exact in a double, and what rounding leaves over goes to the largest.
template <size_t kCount>
void RoundToOne(std::array<double, kCount>& shares) {
  constexpr double kOne = 9007199254740992;  // 2^53
  double sum = 0;
  for (double& share : shares) {
    share = std::round(share * kOne);
    sum += share;
  }
  *std::max_element(shares.begin(), shares.end()) += kOne - sum;
  for (double& share : shares) share /= kOne;
}

void FillWall(const ProfileAggregate& aggregate, Report& report) {
  if (BasisOf(aggregate) != ShareBasis::kWall) return;
  const WallSums& sums = aggregate.totals().wall;
  std::array<uint64_t, kCategoryCount> ns{};
  uint64_t all = 0;
  for (const LocationTotals& location : aggregate.locations()) {
    ns[static_cast<size_t>(location.location.category)] += location.counts.wall_ns;
    all += location.counts.wall_ns;
  }
  // Whatever foreign sums say, the parts are those of a whole.
  const uint64_t whole = std::max(sums.elapsed_ns, all);
  std::array<double, kCategoryCount + 1> parts{};
  for (size_t i = 0; i < kCategoryCount; ++i) parts[i] = ShareOf(ns[i], whole);
  parts[kCategoryCount] = ShareOf(whole - all, whole);
  RoundToOne(parts);
  WallTotals& wall = report.time.wall.emplace();
  std::copy_n(parts.begin(), kCategoryCount, wall.category_share.begin());
  wall.waiting_share = parts[kCategoryCount];
  wall.elapsed_seconds = static_cast<double>(sums.elapsed_ns) / kNsPerSecond;
  wall.cpu_wait_seconds = static_cast<double>(sums.cpu_wait_ns) / kNsPerSecond;
}

void FillCategories(const ProfileAggregate& aggregate, Report& report) {
  uint64_t waiting_ns = 0;
  std::array<uint64_t, kCategoryCount> cpu_ns{};
  for (const LocationTotals& location : aggregate.locations()) {
    const auto category = static_cast<size_t>(location.location.category);
    report.category_samples[category] += location.counts.samples;
    cpu_ns[category] += location.counts.cpu_ns;
    if (IsWaitingLoop(location.location) && location.location.category == Category::kLibrary)
      waiting_ns += location.counts.cpu_ns;
  }
  const uint64_t total = aggregate.totals().cpu_ns;
  if (total == 0) return;
  for (size_t i = 0; i < report.category_share.size(); ++i)
    report.category_share[i] = ShareOf(cpu_ns[i], total);
  RoundToOne(report.category_share);
  report.time.waiting_share = ShareOf(waiting_ns, total);
}

// Causes add up to the category, whatever is lost in rounding.
void FitTo(double whole, double KernelShare::*share, std::vector<KernelShare>& causes) {
  double rest = whole;
  for (const KernelShare& cause : causes) rest -= cause.*share;
  if (!causes.empty()) causes.front().*share = std::max(0.0, causes.front().*share + rest);
}

void FillKernel(const ProfileAggregate& aggregate, Report& report) {
  std::array<Counts, kKernelCauseCount> counts{};
  for (const LocationTotals& location : aggregate.locations()) {
    if (location.location.category == Category::kKernel)
      counts[static_cast<size_t>(location.location.kernel_cause)] += location.counts;
  }
  const uint64_t wall_ns = aggregate.totals().wall.elapsed_ns;
  std::vector<KernelShare>& causes = report.time.kernel;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i].samples == 0) continue;
    const double wall = report.time.wall.has_value() ? ShareOf(counts[i].wall_ns, wall_ns) : 0;
    causes.push_back({static_cast<KernelCause>(i), counts[i].samples,
                      ShareOf(counts[i].cpu_ns, aggregate.totals().cpu_ns), wall});
  }
  std::sort(causes.begin(), causes.end(), [](const KernelShare& a, const KernelShare& b) {
    return std::tuple(a.wall_share, a.share, a.samples) >
           std::tuple(b.wall_share, b.share, b.samples);
  });
  constexpr auto kKernel = static_cast<size_t>(Category::kKernel);
  FitTo(report.category_share[kKernel], &KernelShare::share, causes);
  if (report.time.wall.has_value())
    FitTo(report.time.wall->category_share[kKernel], &KernelShare::wall_share, causes);
}

void FillNodes(const ProfileAggregate& aggregate, Report& report) {
  for (const NodeTotals& node : aggregate.nodes()) {
    NodeCoverage coverage{node.node, node.windows, static_cast<int64_t>(node.covered_ns),
                          node.setup};
    coverage.setup.frequency_hz = node.MeanFrequencyHz();
    report.nodes.push_back(std::move(coverage));
  }
  std::sort(report.nodes.begin(), report.nodes.end(),
            [](const NodeCoverage& a, const NodeCoverage& b) { return a.node < b.node; });
}

// What all nodes agree on; else whatever claims least.
Provenance CommonProvenance(const Report& report) {
  if (report.nodes.empty()) return Provenance::kSampled;
  const Provenance first = report.nodes.front().setup.provenance;
  bool replayed = false;
  bool same = true;
  for (const NodeCoverage& node : report.nodes) {
    same = same && node.setup.provenance == first;
    replayed = replayed || node.setup.provenance == Provenance::kReplayed;
  }
  if (same) return first;
  return replayed ? Provenance::kReplayed : Provenance::kSampled;
}

uint64_t DroppedByUs(const Accounting& accounting) {
  return accounting.TotalDropped() -
         accounting.dropped[static_cast<size_t>(DropReason::kForeignProcess)];
}

void FillRatios(Report& report) {
  const Accounting& accounting = report.accounting;
  report.missing_ratio = std::min(
      1.0, RatioOf(accounting.lost + DroppedByUs(accounting), accounting.seen + accounting.lost));
  report.overhead_ratio = RatioOf(report.overhead.kernel_sampling_ns + report.overhead.stop_ns,
                                  report.overhead.job_cpu_ns);
}

void AddNotice(std::string text, Report& report) {
  Notice notice;
  notice.severity = Notice::Severity::kWarning;
  notice.code = absl::StatusCode::kResourceExhausted;
  notice.text = std::move(text);
  report.status.notices.push_back(std::move(notice));
}

void SayWhatIsMissing(const LostDetail& lost, size_t rows_left_out, Report& report) {
  if (rows_left_out > 0) {
    AddNotice(
        absl::StrCat(rows_left_out, " places are not listed; the categories hold their samples"),
        report);
  }
  if (!lost.Any()) return;
  AddNotice(absl::StrCat(
                "the profile is larger than perfd keeps in detail: ", lost.location_samples,
                " samples are in (other), ", lost.thread_samples, " are not told apart by thread, ",
                lost.cell_samples, " are missing from the tables per rank and thread, ",
                lost.stack_samples, " have no call path; the totals hold them all"),
            report);
}

}  // namespace

Report BuildReport(const ProfileStatus& status, const ProfileAggregate& aggregate,
                   const ReportLimits& limits) {
  Report report;
  report.status = status;
  const RankTable ranks(aggregate);
  const FilledRows rows = FillRows(aggregate, ranks, limits, report);
  MarkHotLoops(rows, status.spec.hotspots, report);
  FillCategories(aggregate, report);
  FillWall(aggregate, report);
  FillKernel(aggregate, report);
  ranks.FillReport(report);
  FillNodes(aggregate, report);
  report.stacks = HeaviestStacks(aggregate, limits.stacks);
  report.accounting = aggregate.totals().accounting;
  report.overhead = aggregate.totals().overhead;
  FillRatios(report);
  report.provenance = CommonProvenance(report);
  FillVerdicts(aggregate, limits.measured_ranks, report);
  report.findings.memory = MemoryReportOf(aggregate, limits.memory);
  SayWhatIsMissing(aggregate.lost(), rows.left_out, report);
  if (aggregate.findings().measured().lost() > 0) {
    AddNotice(absl::StrCat(aggregate.findings().measured().lost(),
                           " measurements of loops by variants were not kept in full"),
              report);
  }
  return report;
}

}  // namespace perfd::daemon
