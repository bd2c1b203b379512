// The whole report.
#include "core/base/status_macros.h"
#include "core/wire/check/check.h"
#include "core/wire/memory/memory_wire.h"
#include "core/wire/parts.h"
#include "core/wire/variant_wire.h"
#include "core/wire/wire.h"

namespace perfd::wire {
namespace {

constexpr double kMaxSeconds = 1e15;
constexpr double kMaxRatio = 1e15;  // imbalance and overhead have no natural bound

using ProtoRows = google::protobuf::RepeatedPtrField<v1::ReportRow>;

absl::Status ReadRows(const ProtoRows& rows, absl::string_view field, std::vector<ReportRow>& out) {
  RETURN_IF_ERROR(CheckCount(rows.size(), kMaxReportRows, field));
  for (const v1::ReportRow& row : rows) {
    ASSIGN_OR_RETURN(ReportRow read, FromProto(row));
    out.push_back(std::move(read));
  }
  return absl::OkStatus();
}

absl::Status ReadCategories(const v1::Report& report, Report& out) {
  if (report.category_share_size() != kCategoryCount ||
      report.category_samples_size() != kCategoryCount) {
    return absl::InvalidArgumentError("report: one share and one count per category is needed");
  }
  for (int i = 0; i < kCategoryCount; ++i) {
    RETURN_IF_ERROR(CheckRatio(report.category_share(i), "report.category_share"));
    out.category_share[static_cast<size_t>(i)] = report.category_share(i);
    out.category_samples[static_cast<size_t>(i)] = report.category_samples(i);
  }
  RETURN_IF_ERROR(CheckRatio(report.waiting_share(), "report.waiting_share"));
  out.time.waiting_share = report.waiting_share();
  return absl::OkStatus();
}

void FillWall(const WallTotals& wall, v1::WallTotals& out) {
  for (const double share : wall.category_share) out.add_category_share(share);
  out.set_waiting_share(wall.waiting_share);
  out.set_elapsed_seconds(wall.elapsed_seconds);
  out.set_cpu_wait_seconds(wall.cpu_wait_seconds);
}

absl::Status ReadWall(const v1::Report& report, Report& out) {
  if (!report.has_wall()) return absl::OkStatus();
  const v1::WallTotals& wall = report.wall();
  if (wall.category_share_size() != kCategoryCount)
    return absl::InvalidArgumentError("report.wall: one share per category is needed");
  WallTotals& to = out.time.wall.emplace();
  for (int i = 0; i < kCategoryCount; ++i) {
    RETURN_IF_ERROR(CheckRatio(wall.category_share(i), "report.wall.category_share"));
    to.category_share[static_cast<size_t>(i)] = wall.category_share(i);
  }
  RETURN_IF_ERROR(CheckRatio(wall.waiting_share(), "report.wall.waiting_share"));
  RETURN_IF_ERROR(
      CheckNumber(wall.elapsed_seconds(), 0, kMaxSeconds, "report.wall.elapsed_seconds"));
  RETURN_IF_ERROR(
      CheckNumber(wall.cpu_wait_seconds(), 0, kMaxSeconds, "report.wall.cpu_wait_seconds"));
  to.waiting_share = wall.waiting_share();
  to.elapsed_seconds = wall.elapsed_seconds();
  to.cpu_wait_seconds = wall.cpu_wait_seconds();
  return absl::OkStatus();
}

absl::Status ReadKernel(const v1::Report& report, Report& out) {
  RETURN_IF_ERROR(CheckCount(report.kernel_size(), kKernelCauseCount, "report.kernel"));
  for (const v1::KernelShare& share : report.kernel()) {
    KernelShare& to = out.time.kernel.emplace_back();
    ASSIGN_OR_RETURN(to.cause,
                     ModelEnum(share.cause(), KernelCause::kOther, "report.kernel.cause"));
    RETURN_IF_ERROR(CheckRatio(share.share(), "report.kernel.share"));
    RETURN_IF_ERROR(CheckRatio(share.wall_share(), "report.kernel.wall_share"));
    to.samples = share.samples();
    to.share = share.share();
    to.wall_share = share.wall_share();
  }
  return absl::OkStatus();
}

void FillKernel(const std::vector<KernelShare>& kernel, v1::Report& out) {
  for (const KernelShare& share : kernel) {
    v1::KernelShare* to = out.add_kernel();
    to->set_cause(WireEnum<v1::KernelCause>(share.cause));
    to->set_samples(share.samples);
    to->set_share(share.share);
    to->set_wall_share(share.wall_share);
  }
}

void FillRank(const RankSummary& rank, v1::RankSummary& out) {
  *out.mutable_info() = ToProto(rank.info);
  out.set_samples(rank.samples);
  out.set_seconds(rank.seconds);
  out.set_compute_seconds(rank.compute_seconds);
  out.set_threads(rank.threads);
  out.set_ended_early(rank.ended_early);
  out.set_elapsed_seconds(rank.elapsed_seconds);
  out.set_compute_wall_seconds(rank.compute_wall_seconds);
  out.set_cpu_wait_seconds(rank.cpu_wait_seconds);
}

absl::StatusOr<RankSummary> ReadRank(const v1::RankSummary& rank) {
  RETURN_IF_ERROR(CheckNumber(rank.seconds(), 0, kMaxSeconds, "report.ranks.seconds"));
  RETURN_IF_ERROR(
      CheckNumber(rank.compute_seconds(), 0, kMaxSeconds, "report.ranks.compute_seconds"));
  RETURN_IF_ERROR(
      CheckNumber(rank.elapsed_seconds(), 0, kMaxSeconds, "report.ranks.elapsed_seconds"));
  RETURN_IF_ERROR(CheckNumber(rank.compute_wall_seconds(), 0, kMaxSeconds,
                              "report.ranks.compute_wall_seconds"));
  RETURN_IF_ERROR(
      CheckNumber(rank.cpu_wait_seconds(), 0, kMaxSeconds, "report.ranks.cpu_wait_seconds"));
  RETURN_IF_ERROR(CheckRange(rank.threads(), 0, INT32_MAX, "report.ranks.threads"));
  RankSummary out;
  ASSIGN_OR_RETURN(out.info, FromProto(rank.info()));
  out.samples = rank.samples();
  out.seconds = rank.seconds();
  out.compute_seconds = rank.compute_seconds();
  out.threads = rank.threads();
  out.ended_early = rank.ended_early();
  out.elapsed_seconds = rank.elapsed_seconds();
  out.compute_wall_seconds = rank.compute_wall_seconds();
  out.cpu_wait_seconds = rank.cpu_wait_seconds();
  return out;
}

absl::Status ReadRanks(const v1::Report& report, Report& out) {
  RETURN_IF_ERROR(CheckCount(report.ranks_size(), kMaxReportRanks, "report.ranks"));
  for (const v1::RankSummary& rank : report.ranks()) {
    ASSIGN_OR_RETURN(RankSummary read, ReadRank(rank));
    out.ranks.push_back(std::move(read));
  }
  RETURN_IF_ERROR(CheckText(report.worst_rank(), "report.worst_rank"));
  RETURN_IF_ERROR(CheckNumber(report.imbalance(), 0, kMaxRatio, "report.imbalance"));
  out.worst_rank = report.worst_rank();
  out.imbalance = report.imbalance();
  return absl::OkStatus();
}

void FillNode(const NodeCoverage& node, v1::NodeCoverage& out) {
  out.set_node(CleanText(node.node));
  out.set_windows(node.windows);
  out.set_covered_ns(node.covered_ns);
  *out.mutable_setup() = ToProto(node.setup);
}

absl::Status ReadNodes(const v1::Report& report, Report& out) {
  RETURN_IF_ERROR(CheckCount(report.nodes_size(), kMaxNodes, "report.nodes"));
  for (const v1::NodeCoverage& node : report.nodes()) {
    RETURN_IF_ERROR(CheckText(node.node(), "report.nodes.node"));
    RETURN_IF_ERROR(CheckRange(node.covered_ns(), 0, INT64_MAX, "report.nodes.covered_ns"));
    ASSIGN_OR_RETURN(SamplingSetup setup, FromProto(node.setup()));
    out.nodes.push_back({node.node(), node.windows(), node.covered_ns(), std::move(setup)});
  }
  return absl::OkStatus();
}

void FillStack(const ReportStack& stack, v1::ReportStack& out) {
  out.set_rank(stack.rank);
  for (const std::string& frame : stack.frames) out.add_frames(CleanText(frame));
  out.set_samples(stack.samples);
}

absl::Status ReadStacks(const v1::Report& report, Report& out) {
  RETURN_IF_ERROR(CheckCount(report.stacks_size(), kMaxStacks, "report.stacks"));
  for (const v1::ReportStack& stack : report.stacks()) {
    RETURN_IF_ERROR(CheckRange(stack.rank(), 0, INT32_MAX, "report.stacks.rank"));
    RETURN_IF_ERROR(CheckCount(stack.frames_size(), kMaxStackFrames, "report.stacks.frames"));
    for (const std::string& frame : stack.frames())
      RETURN_IF_ERROR(CheckText(frame, "report.stacks.frames"));
    out.stacks.push_back(
        {stack.rank(), {stack.frames().begin(), stack.frames().end()}, stack.samples()});
  }
  return absl::OkStatus();
}

absl::Status ReadTotals(const v1::Report& report, Report& out) {
  ASSIGN_OR_RETURN(out.accounting, FromProto(report.accounting()));
  ASSIGN_OR_RETURN(out.overhead, FromProto(report.overhead()));
  RETURN_IF_ERROR(CheckNumber(report.overhead_ratio(), 0, kMaxRatio, "report.overhead_ratio"));
  RETURN_IF_ERROR(CheckRatio(report.missing_ratio(), "report.missing_ratio"));
  out.overhead_ratio = report.overhead_ratio();
  out.missing_ratio = report.missing_ratio();
  ASSIGN_OR_RETURN(out.provenance,
                   ModelEnum(report.provenance(), Provenance::kEstimated, "report.provenance"));
  return absl::OkStatus();
}

absl::Status ReadVerdicts(const v1::Report& report, Report& out) {
  RETURN_IF_ERROR(CheckCount(report.verdicts_size(), kMaxMeasureLoops, "report.verdicts"));
  for (const v1::LoopVerdict& loop : report.verdicts()) {
    ASSIGN_OR_RETURN(LoopVerdict read, FromProto(loop));
    out.findings.verdicts.push_back(std::move(read));
  }
  ASSIGN_OR_RETURN(out.findings.injection, FromProto(report.injection()));
  return absl::OkStatus();
}

}  // namespace

v1::Report ToProto(const Report& report) {
  v1::Report out;
  *out.mutable_status() = ToProto(report.status);
  for (const ReportRow& row : report.loops) *out.add_loops() = ToProto(row);
  for (const ReportRow& row : report.waiting) *out.add_waiting() = ToProto(row);
  for (const ReportRow& row : report.functions) *out.add_functions() = ToProto(row);
  for (double share : report.category_share) out.add_category_share(share);
  for (uint64_t samples : report.category_samples) out.add_category_samples(samples);
  out.set_waiting_share(report.time.waiting_share);
  if (report.time.wall.has_value()) FillWall(*report.time.wall, *out.mutable_wall());
  FillKernel(report.time.kernel, out);
  for (const RankSummary& rank : report.ranks) FillRank(rank, *out.add_ranks());
  out.set_worst_rank(CleanText(report.worst_rank));
  out.set_imbalance(report.imbalance);
  for (const NodeCoverage& node : report.nodes) FillNode(node, *out.add_nodes());
  for (const ReportStack& stack : report.stacks) FillStack(stack, *out.add_stacks());
  *out.mutable_accounting() = ToProto(report.accounting);
  *out.mutable_overhead() = ToProto(report.overhead);
  out.set_overhead_ratio(report.overhead_ratio);
  out.set_missing_ratio(report.missing_ratio);
  out.set_provenance(WireEnum<v1::Provenance>(report.provenance));
  for (const LoopVerdict& loop : report.findings.verdicts) *out.add_verdicts() = ToProto(loop);
  *out.mutable_injection() = ToProto(report.findings.injection);
  if (report.findings.memory.Any()) *out.mutable_memory() = ToProto(report.findings.memory);
  return out;
}

absl::StatusOr<Report> FromProto(const v1::Report& report) {
  Report out;
  ASSIGN_OR_RETURN(out.status, FromProto(report.status()));
  RETURN_IF_ERROR(ReadRows(report.loops(), "report.loops", out.loops));
  RETURN_IF_ERROR(ReadRows(report.waiting(), "report.waiting", out.waiting));
  RETURN_IF_ERROR(ReadRows(report.functions(), "report.functions", out.functions));
  RETURN_IF_ERROR(ReadCategories(report, out));
  RETURN_IF_ERROR(ReadWall(report, out));
  RETURN_IF_ERROR(ReadKernel(report, out));
  RETURN_IF_ERROR(ReadRanks(report, out));
  RETURN_IF_ERROR(ReadNodes(report, out));
  RETURN_IF_ERROR(ReadStacks(report, out));
  RETURN_IF_ERROR(ReadTotals(report, out));
  RETURN_IF_ERROR(ReadVerdicts(report, out));
  ASSIGN_OR_RETURN(out.findings.memory, FromProto(report.memory()));
  return out;
}

}  // namespace perfd::wire
