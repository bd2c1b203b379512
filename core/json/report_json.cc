#include "core/json/report_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/analysis/added_wall.h"
#include "core/analysis/loop_parts.h"
#include "core/analysis/stack_time.h"
#include "core/json/memory/memory_json.h"
#include "core/json/status_json.h"
#include "core/json/verdict_json.h"

namespace perfd {
namespace {

// At most; only `injection_ns` is measured.
Json AddedWallToJson(const AddedWall& wall) {
  return {{"sampling_ns", wall.sampling_ns},
          {"agents_ns", wall.agents_ns},
          {"injection_ns", wall.injection_ns},
          {"total_ns", wall.TotalNs()},
          {"ratio", wall.ratio},
          {"provenance", "estimated"}};
}

std::string Address(uint64_t address) {
  return absl::StrCat("0x", absl::Hex(address));
}

// "outside loops" -> "outside_loops".
std::string CategoryKey(Category category) {
  std::string key = CategoryName(category);
  std::replace(key.begin(), key.end(), ' ', '_');
  return key;
}

const char* RankSourceKey(RankSource source) {
  switch (source) {
    case RankSource::kNone:
      return "none";
    case RankSource::kPmix:
      return "pmix";
    case RankSource::kOpenMpi:
      return "open_mpi";
    case RankSource::kPmi:
      return "pmi";
    case RankSource::kSlurm:
      return "slurm";
  }
  return "none";
}

Json LoopToJson(const LoopFacts& loop) {
  return {{"header", Address(loop.header)},
          {"parent_header", Address(loop.parent_header)},
          {"depth", loop.depth},
          {"innermost", loop.innermost},
          {"irreducible", loop.irreducible},
          {"blocks", loop.block_count},
          {"instructions", loop.instruction_count},
          {"inlined_from", loop.inlined_from}};
}

Json RowsToJson(const std::vector<ReportRow>& rows) {
  Json list = Json::array();
  for (const ReportRow& row : rows) list.push_back(RowToJson(row));
  return list;
}

// With the other loops of the same lines.
Json LoopsToJson(const std::vector<ReportRow>& rows) {
  Json list = RowsToJson(rows);
  const std::vector<LoopPart> parts = LoopParts(rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    list[i]["loops_of_lines"] = parts[i].loops;
    list[i]["main_of_lines"] = rows[parts[i].main].id;
  }
  return list;
}

Json WallToJson(const WallTotals& wall) {
  Json json = Json::object();
  for (size_t i = 0; i < kCategoryCount; ++i)
    json[CategoryKey(static_cast<Category>(i))] = wall.category_share[i];
  json["waiting_or_idle"] = wall.waiting_share;
  json["elapsed_seconds"] = wall.elapsed_seconds;
  json["cpu_wait_seconds"] = wall.cpu_wait_seconds;
  return json;
}

Json KernelToJson(const TimeTotals& time) {
  Json list = Json::array();
  for (const KernelShare& share : time.kernel)
    list.push_back({{"cause", KernelCauseName(share.cause)},
                    {"share", share.share},
                    {"wall_share", time.wall.has_value() ? Json(share.wall_share) : Json(nullptr)},
                    {"samples", share.samples}});
  return list;
}

Json TotalsToJson(const Report& report) {
  Json totals = Json::object();
  for (size_t i = 0; i < kCategoryCount; ++i)
    totals[CategoryKey(static_cast<Category>(i))] = {{"share", report.category_share[i]},
                                                     {"samples", report.category_samples[i]}};
  totals["waiting_share"] = report.time.waiting_share;
  totals["kernel_causes"] = KernelToJson(report.time);
  totals["wall"] = report.time.wall.has_value() ? WallToJson(*report.time.wall) : Json(nullptr);
  return totals;
}

// Null where elapsed time is not divided.
Json WallFigure(bool known, double value) {
  return known ? Json(value) : Json(nullptr);
}

Json RanksToJson(const std::vector<RankSummary>& ranks, bool wall) {
  Json list = Json::array();
  for (const RankSummary& r : ranks)
    list.push_back({{"rank", r.info.rank},
                    {"world_size", r.info.world_size},
                    {"node", r.info.node},
                    {"pid", r.info.pid},
                    {"uid", r.info.uid},
                    {"job_id", r.info.job_id},
                    {"command", r.info.command},
                    {"rank_source", RankSourceKey(r.info.source)},
                    {"samples", r.samples},
                    {"seconds", r.seconds},
                    {"compute_seconds", r.compute_seconds},
                    {"threads", r.threads},
                    {"ended_early", r.ended_early},
                    {"elapsed_seconds", WallFigure(wall, r.elapsed_seconds)},
                    {"compute_wall_seconds", WallFigure(wall, r.compute_wall_seconds)},
                    {"cpu_wait_seconds", WallFigure(wall, r.cpu_wait_seconds)}});
  return list;
}

Json CoverageToJson(const std::vector<NodeCoverage>& nodes) {
  Json list = Json::array();
  for (const NodeCoverage& n : nodes)
    list.push_back({{"node", n.node},
                    {"windows", n.windows},
                    {"covered_ns", n.covered_ns},
                    {"event", n.setup.event},
                    {"frequency_hz", n.setup.frequency_hz},
                    {"kernel_included", n.setup.kernel_included},
                    {"method", n.setup.method},
                    {"provenance", ProvenanceName(n.setup.provenance)}});
  return list;
}

Json AccountingToJson(const Accounting& a) {
  Json dropped = Json::object();
  for (size_t i = 0; i < kDropReasonCount; ++i)
    dropped[DropReasonName(static_cast<DropReason>(i))] = a.dropped[i];
  return {{"seen", a.seen},
          {"kept", a.kept},
          {"lost", a.lost},
          {"dropped", dropped},
          {"dropped_total", a.TotalDropped()},
          {"throttled", a.throttled},
          {"stack_truncated", a.stack_truncated},
          {"stack_skipped", a.stack_skipped},
          {"late_threads", a.late_threads},
          {"late_thread_cpu_ns", a.late_thread_cpu_ns}};
}

}  // namespace

Json RowToJson(const ReportRow& row) {
  const CodeLocation& at = row.location;
  Json ranks = Json::array();
  for (const RankShare& r : row.ranks)
    ranks.push_back(
        {{"node", r.node},
         {"rank", r.rank},
         {"samples", r.samples},
         {"seconds", r.seconds},
         {"share_of_rank", r.share_of_rank},
         {"wall_share_of_rank", WallFigure(row.wall.has_value(), r.wall_share_of_rank)}});
  Json threads = Json::array();
  for (const ThreadShare& t : row.threads)
    threads.push_back({{"node", t.thread.node},
                       {"rank", t.thread.rank},
                       {"pid", t.thread.pid},
                       {"tid", t.thread.tid},
                       {"samples", t.samples},
                       {"share_of_thread", t.share_of_thread}});
  const bool walled = row.wall.has_value();
  const WallShare wall = row.wall.value_or(WallShare{});
  const bool kernel = at.category == Category::kKernel;
  return {{"id", row.id},
          {"function", at.function},
          {"file", at.source.file},
          {"first_line", at.source.first_line},
          {"last_line", at.source.last_line},
          {"module", at.module_path},
          {"module_id", at.module_id},
          {"category", CategoryKey(at.category)},
          {"waiting", at.loop_kind == LoopKind::kWaiting},
          {"openmp", at.openmp == OpenMpKind::kOutlined},
          {"loop", at.loop.has_value() ? LoopToJson(*at.loop) : Json(nullptr)},
          {"kernel_cause", kernel ? Json(KernelCauseName(at.kernel_cause)) : Json(nullptr)},
          {"kernel_caller", kernel ? Json(at.kernel_caller) : Json(nullptr)},
          {"samples", row.samples},
          {"share", row.share},
          {"share_low", row.share_interval.low},
          {"share_high", row.share_interval.high},
          {"inclusive_share", row.inclusive_share},
          {"called_share", row.called.share},
          {"wall_share", WallFigure(walled, wall.share)},
          {"wall_share_low", WallFigure(walled, wall.interval.low)},
          {"wall_share_high", WallFigure(walled, wall.interval.high)},
          {"wall_inclusive_share", WallFigure(walled, wall.inclusive)},
          {"wall_called_share", WallFigure(walled, wall.called.share)},
          {"hot", row.hot},
          {"rank_min_seconds", row.rank_seconds.min},
          {"rank_median_seconds", row.rank_seconds.median},
          {"rank_max_seconds", row.rank_seconds.max},
          {"worst_rank", row.worst_rank},
          {"imbalance", row.imbalance},
          {"thread_count", row.thread_count},
          {"first_seen_ns", row.seen.first_ns},
          {"last_seen_ns", row.seen.last_ns},
          {"ranks", ranks},
          {"threads", threads}};
}

Json ReportToJson(const Report& report) {
  Json stacks = Json::array();
  const std::vector<double> seconds = StackSeconds(report);
  for (size_t i = 0; i < report.stacks.size(); ++i) {
    const ReportStack& s = report.stacks[i];
    stacks.push_back(
        {{"rank", s.rank}, {"frames", s.frames}, {"samples", s.samples}, {"seconds", seconds[i]}});
  }
  Json verdicts = Json::array();
  for (const LoopVerdict& loop : report.findings.verdicts) verdicts.push_back(VerdictToJson(loop));
  const OverheadFigures& o = report.overhead;
  return {{"version", kReportJsonVersion},
          {"share_basis", report.time.basis() == ShareBasis::kWall ? "wall" : "cpu"},
          {"status", StatusToJson(report.status)},
          {"loops", LoopsToJson(report.loops)},
          {"waiting", RowsToJson(report.waiting)},
          {"functions", RowsToJson(report.functions)},
          {"totals", TotalsToJson(report)},
          {"ranks", RanksToJson(report.ranks, report.time.wall.has_value())},
          {"worst_rank", report.worst_rank},
          {"imbalance", report.imbalance},
          {"nodes", CoverageToJson(report.nodes)},
          {"stacks", stacks},
          {"accounting", AccountingToJson(report.accounting)},
          {"overhead",
           {{"agent_cpu_ns", o.agent_cpu_ns},
            {"lost_to_agent_ns", o.lost_to_agent_ns},
            {"kernel_sampling_ns", o.kernel_sampling_ns},
            {"kernel_sampling_provenance", "estimated"},
            {"job_cpu_ns", o.job_cpu_ns},
            {"stop_ns", o.stop_ns},
            {"stops", o.stops},
            {"rank_wall_ns", o.rank_wall_ns}}},
          {"added_wall", AddedWallToJson(AddedWallOf(report))},
          {"overhead_ratio", report.overhead_ratio},
          {"missing_ratio", report.missing_ratio},
          {"provenance", ProvenanceName(report.provenance)},
          {"verdicts", verdicts},
          {"injection", InjectionToJson(report.findings.injection)},
          {"memory", MemoryReportToJson(report.findings.memory)}};
}

}  // namespace perfd
