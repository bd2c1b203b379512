#include "client/render/report_totals.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/render/notices/notice_text.h"
#include "client/render/report_text.h"
#include "client/render/saturation_text.h"
#include "client/render/shares.h"
#include "client/render/text_table.h"
#include "core/analysis/added_wall.h"
#include "core/base/clock.h"

namespace perfd::client {
namespace {

constexpr size_t kMaxRanksShown = 64;

template <typename Int>
double ToSeconds(Int ns) {
  return static_cast<double>(ns) / kNsPerSecond;
}

std::string Tenths(int tenths) {
  return absl::StrFormat("%d.%d%%", tenths / 10, tenths % 10);
}

std::string SampleLine(const Accounting& a, double missing_ratio) {
  std::string text = absl::StrCat("Samples: ", a.seen, " seen, ", a.kept, " kept, ", a.lost,
                                  " lost in the kernel, ", a.TotalDropped(), " dropped");
  std::string reasons;
  for (size_t i = 0; i < kDropReasonCount; ++i) {
    if (a.dropped[i] == 0) continue;
    absl::StrAppend(&reasons, reasons.empty() ? "" : ", ",
                    DropReasonName(static_cast<DropReason>(i)), " ", a.dropped[i]);
  }
  if (!reasons.empty()) absl::StrAppend(&text, " (", reasons, ")");
  absl::StrAppend(&text, "; ", Percent(missing_ratio), " missing\n");
  if (!a.Balanced()) absl::StrAppend(&text, "  these counts do not add up: please report this\n");
  if (a.throttled > 0)
    absl::StrAppend(&text, "  the kernel throttled sampling ", a.throttled, " times\n");
  if (a.stack_truncated > 0)
    absl::StrAppend(&text, "  ", a.stack_truncated, " call paths ended early\n");
  if (a.stack_skipped > 0)
    absl::StrAppend(&text, "  ", a.stack_skipped, " samples have no call path\n");
  if (a.late_threads > 0)
    absl::StrAppend(&text, "  ", a.late_threads, " threads ran before they were seen: ",
                    Seconds(ToSeconds(a.late_thread_cpu_ns)),
                    " s of CPU time, and what those used that had ended by then\n");
  return text;
}

// 0: no node has sampled.
double LeastHz(const Report& report) {
  double least = 0;
  for (const auto& node : report.nodes) {
    const double hz = node.setup.frequency_hz;
    if (hz > 0 && (least == 0 || hz < least)) least = hz;
  }
  return least;
}

// Of threads that end before they can be sampled the kernel's account of the process tells all the same.
std::string UnsampledLine(const Report& report) {
  constexpr double kWorthTelling = 0.05;
  constexpr double kLeastExpected = 20;  // samples; of fewer, half may be missing by chance
  constexpr double kMostlyUnseen = 0.5;
  const double job = ToSeconds(report.overhead.job_cpu_ns);
  double sampled = 0;
  for (const RankSummary& rank : report.ranks) sampled += rank.seconds;
  const std::string much = absl::StrCat("  sampled: ", Seconds(sampled), " of the job's ",
                                        Seconds(job), " s of CPU time: ");
  if (report.accounting.late_threads > 0 && job - sampled >= kWorthTelling * job)
    return absl::StrCat(much,
                        "threads ended before they could be sampled; shares are of what was "
                        "sampled, their intervals allow for the rest\n");
  const Accounting& a = report.accounting;
  const bool lost = a.lost > 0 || a.throttled > 0 || a.kept < a.seen;
  if (!lost && job * LeastHz(report) >= kLeastExpected && sampled < kMostlyUnseen * job)
    return absl::StrCat(much,
                        "the rest was in threads that compute for less than a sampling period "
                        "each, or in the kernel where that is not sampled\n");
  return "";
}

// Of ranks stopped to alter their loops; the pauses for shadows are in the line on injection.
std::string StopText(const OverheadFigures& overhead) {
  if (overhead.stops == 0) return "";
  return absl::StrFormat("%d stops of ranks %s s; ", overhead.stops,
                         Seconds(ToSeconds(overhead.stop_ns)));
}

std::string CostLine(const Report& report) {
  const OverheadFigures& o = report.overhead;
  std::string text = absl::StrFormat(
      "Cost: %.3f%% of the job's CPU time (sampling %s s, estimated; %s"
      "job %s s); budget %s\n",
      report.overhead_ratio * 100, Seconds(ToSeconds(o.kernel_sampling_ns)), StopText(o),
      Seconds(ToSeconds(o.job_cpu_ns)), Percent(report.status.spec.budget.overhead_ratio));
  absl::StrAppend(&text, "  agents used ", Seconds(ToSeconds(o.agent_cpu_ns)),
                  " s of CPU time beside the job",
                  o.lost_to_agent_ns < o.agent_cpu_ns
                      ? absl::StrCat(", by which it can have lost ",
                                     Seconds(ToSeconds(o.lost_to_agent_ns)), " s at most")
                      : "",
                  "\n");
  const AddedWall wall = AddedWallOf(report);
  if (wall.ratio <= 0) return text;
  absl::StrAppendFormat(&text,
                        "  added wall time: about %.2f%% in the mean of the ranks (sampling %s s, "
                        "agents %s s, estimated; "
                        "stops and shadows %s s)\n",
                        wall.ratio * 100, Seconds(ToSeconds(wall.sampling_ns)),
                        Seconds(ToSeconds(wall.agents_ns)), Seconds(ToSeconds(wall.injection_ns)));
  const double budget = report.status.spec.budget.overhead_ratio;
  if (wall.ratio > budget)
    absl::StrAppend(&text, "  that is more than the budget of ", Percent(budget),
                    ": the agents' own work alone is ",
                    Percent(wall.ratio * static_cast<double>(wall.agents_ns) /
                            static_cast<double>(wall.TotalNs())),
                    " here\n");
  return text;
}

std::string SetupLines(const Report& report) {
  std::string text = absl::StrCat("Source: ", ProvenanceName(report.provenance), "\n");
  for (const NodeCoverage& node : report.nodes)
    absl::StrAppend(&text, "  ", Clean(node.node), ": ", Clean(node.setup.event), " at ",
                    absl::StrFormat("%.0f", node.setup.frequency_hz), " Hz, ",
                    Clean(node.setup.method),
                    node.setup.kernel_included ? ", user and kernel" : ", user only", ", ",
                    ProvenanceName(node.setup.provenance), ", ",
                    Seconds(static_cast<double>(node.covered_ns) / kNsPerSecond), " s in ",
                    node.windows, " windows\n");
  return text;
}

// Of each category, of waiting, and their sum; "-" where some agent does not divide elapsed time.
std::vector<std::string> WallColumn(const Report& report) {
  std::vector<std::string> column(kCategoryCount + 2, "-");
  if (!report.time.wall.has_value()) return column;
  std::vector<double> shares(report.time.wall->category_share.begin(),
                             report.time.wall->category_share.end());
  shares.push_back(report.time.wall->waiting_share);
  const std::vector<int> tenths = RoundToTenths(shares);
  int sum = 0;
  for (size_t i = 0; i < tenths.size(); ++i) {
    column[i] = Tenths(tenths[i]);
    sum += tenths[i];
  }
  column.back() = Tenths(sum);
  return column;
}

constexpr size_t kCallersShown = 2;

// Who came into the kernel for that, heaviest first; rows are.
std::string CallersText(const Report& report, KernelCause cause) {
  std::string text;
  size_t shown = 0;
  for (const ReportRow& row : report.functions) {
    const CodeLocation& at = row.location;
    if (at.category != Category::kKernel || at.kernel_cause != cause || at.kernel_caller.empty())
      continue;
    if (++shown > kCallersShown) break;
    absl::StrAppend(&text, text.empty() ? "  by " : ", ", CutEnd(Clean(at.kernel_caller), 40));
    if (!at.source.file.empty())
      absl::StrAppend(&text, " (", CutEnd(Clean(SourceText(at.source)), 40), ")");
  }
  return text;
}

// Nothing where there is nothing to tell.
std::string KernelLines(const Report& report) {
  const std::vector<KernelShare>& causes = report.time.kernel;
  if (causes.empty() || (causes.size() == 1 && causes[0].cause == KernelCause::kUnknown)) return "";
  std::string text;
  for (const KernelShare& share : causes)
    absl::StrAppendFormat(&text, "    %-20s %6s  %6s %14d samples%s\n",
                          KernelCauseText(share.cause),
                          report.time.wall.has_value() ? Percent(share.wall_share) : "-",
                          Percent(share.share), share.samples, CallersText(report, share.cause));
  return text;
}

std::string WallLine(const Report& report) {
  if (!report.time.wall.has_value())
    return "  WALL -: some agent does not divide elapsed time; loops are in the order of CPU "
           "time\n";
  const WallTotals& wall = *report.time.wall;
  return absl::StrCat(
      "  WALL: each moment of a rank's elapsed time, divided among its threads that ", "compute; ",
      Seconds(wall.elapsed_seconds), " s over all ranks. Threads waited ",
      Seconds(wall.cpu_wait_seconds), " s for a CPU\n");
}

}  // namespace

const char* KernelCauseText(KernelCause cause) {
  switch (cause) {
    case KernelCause::kUnknown:
      return "cause not known";
    case KernelCause::kPageFault:
      return "page faults";
    case KernelCause::kMemoryReturn:
      return "return of memory";
    case KernelCause::kMemoryMap:
      return "mapping of memory";
    case KernelCause::kIo:
      return "files and sockets";
    case KernelCause::kCopy:
      return "copies of processes";
    case KernelCause::kWaiting:
      return "waits and wake-ups";
    case KernelCause::kInterrupt:
      return "interrupts";
    case KernelCause::kOther:
      return "other calls";
  }
  return "";
}

std::string RenderTotals(const Report& report, const TextStyle& style) {
  const std::vector<int> tenths = RoundToTenths(report.category_share);
  const std::vector<std::string> wall = WallColumn(report);
  std::string text = absl::StrFormat("Where the time went\n  %-15s %6s  %6s\n", "", "WALL", "CPU");
  int sum = 0;
  uint64_t samples = 0;
  for (int c = 0; c < kCategoryCount; ++c) {
    const auto i = static_cast<size_t>(c);
    const auto category = static_cast<Category>(c);
    const double bar = report.time.wall.has_value() ? report.time.wall->category_share[i]
                                                    : report.category_share[i];
    absl::StrAppendFormat(&text, "  %-15s %6s  %6s  %s %10d samples", CategoryName(category),
                          wall[i], Tenths(tenths[i]), Bar(style, bar, 20),
                          report.category_samples[i]);
    if (category == Category::kLibrary && report.time.waiting_share > 0)
      absl::StrAppend(&text, "  (waiting loops ", Percent(report.time.waiting_share), " of CPU)");
    text += "\n";
    if (category == Category::kKernel) text += KernelLines(report);
    sum += tenths[i];
    samples += report.category_samples[i];
  }
  if (report.time.wall.has_value())
    absl::StrAppendFormat(&text, "  %-15s %6s  %6s  %s\n", "waiting or idle", wall[kCategoryCount],
                          "-", Bar(style, report.time.wall->waiting_share, 20));
  absl::StrAppendFormat(&text, "  %-15s %6s  %6s  %20s %10d samples\n", "total", wall.back(),
                        Tenths(sum), "", samples);
  return text + WallLine(report);
}

std::string RenderRanks(const Report& report) {
  if (report.ranks.empty()) return "No rank was seen.\n";
  TextTable table({{"RANK", true},
                   {"NODE"},
                   {"PID", true},
                   {"COMMAND"},
                   {"WALL S", true},
                   {"CPU S", true},
                   {"COMPUTE S", true},
                   {"WAITED FOR CPU S", true},
                   {"SAMPLES", true},
                   {"THREADS", true},
                   {""}});
  const bool wall = report.time.wall.has_value();
  const size_t shown = std::min(report.ranks.size(), kMaxRanksShown);
  for (size_t i = 0; i < shown; ++i) {
    const RankSummary& r = report.ranks[i];
    table.Add({absl::StrCat(r.info.rank), r.info.node, absl::StrCat(r.info.pid),
               CutEnd(Clean(r.info.command), 24), wall ? Seconds(r.elapsed_seconds) : "-",
               Seconds(r.seconds), Seconds(r.compute_seconds),
               wall ? Seconds(r.cpu_wait_seconds) : "-", absl::StrCat(r.samples),
               absl::StrCat(r.threads), r.ended_early ? "ended early" : ""});
  }
  std::string text = "Ranks\n" + table.Render();
  if (shown < report.ranks.size())
    absl::StrAppend(&text, "  ... and ", report.ranks.size() - shown, " more (--json has all)\n");
  if (!report.worst_rank.empty())
    absl::StrAppendFormat(&text, "  worst %s, imbalance %.2f (max / mean of compute seconds)\n",
                          Clean(report.worst_rank), report.imbalance);
  return text;
}

std::string RenderAccounting(const Report& report) {
  return absl::StrCat(SampleLine(report.accounting, report.missing_ratio), UnsampledLine(report),
                      CostLine(report), RenderInjection(report), SetupLines(report));
}

std::string RenderNotices(const std::vector<Notice>& notices, const TextStyle& style) {
  std::string text;
  for (const auto severity :
       {Notice::Severity::kError, Notice::Severity::kWarning, Notice::Severity::kInfo}) {
    for (const Notice& notice : notices) {
      if (notice.severity != severity) continue;
      std::string where;
      if (!notice.node.empty()) where = absl::StrCat(Clean(notice.node), ": ");
      if (notice.pid != 0 && !NamesProcess(notice))
        absl::StrAppend(&where, "pid ", notice.pid, ": ");
      const std::string rest = absl::StrCat(where, Clean(NoticeText(notice)), "\n");
      if (severity == Notice::Severity::kError)
        text += Painted(style, Paint::kRed, "error: ") + rest;
      if (severity == Notice::Severity::kWarning)
        text += Painted(style, Paint::kYellow, "warning: ") + rest;
      if (severity == Notice::Severity::kInfo) text += "note: " + rest;
    }
  }
  return text;
}

}  // namespace perfd::client
