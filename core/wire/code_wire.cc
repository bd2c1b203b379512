// Ranks, source ranges, loops and places in the code.
#include "core/base/status_macros.h"
#include "core/wire/check/check.h"
#include "core/wire/parts.h"
#include "core/wire/wire.h"

namespace perfd::wire {
namespace {

// The one enum whose zero is a value: a process that is no MPI rank.
static_assert(static_cast<int>(RankSource::kNone) == v1::RANK_SOURCE_UNSPECIFIED);
static_assert(static_cast<int>(RankSource::kSlurm) == v1::RANK_SOURCE_SLURM);
static_assert(static_cast<int>(Category::kUnknown) + 1 == v1::CATEGORY_UNKNOWN);
static_assert(static_cast<int>(KernelCause::kOther) + 1 == v1::KERNEL_CAUSE_OTHER);
static_assert(v1::KERNEL_CAUSE_OTHER == kKernelCauseCount);

// Of nothing but the kernel.
absl::Status ReadKernelEntry(const v1::CodeLocation& location, CodeLocation& out) {
  RETURN_IF_ERROR(CheckText(location.kernel_caller(), "location.kernel_caller"));
  const bool told = location.kernel_cause() != v1::KERNEL_CAUSE_UNSPECIFIED;
  if (out.category != Category::kKernel)
    return told || !location.kernel_caller().empty()
               ? absl::InvalidArgumentError("location.kernel_cause: not of the kernel")
               : absl::OkStatus();
  out.kernel_caller = location.kernel_caller();
  if (!told) return absl::OkStatus();
  ASSIGN_OR_RETURN(out.kernel_cause, ModelEnum(location.kernel_cause(), KernelCause::kOther,
                                               "location.kernel_cause"));
  return absl::OkStatus();
}

}  // namespace

v1::RankInfo ToProto(const RankInfo& rank) {
  v1::RankInfo out;
  out.set_node(CleanText(rank.node));
  out.set_pid(rank.pid);
  out.set_uid(rank.uid);
  out.set_start_ticks(rank.start_ticks);
  out.set_rank(rank.rank);
  out.set_world_size(rank.world_size);
  out.set_source(static_cast<v1::RankSource>(rank.source));
  out.set_job_id(CleanText(rank.job_id));
  out.set_command(CleanText(rank.command));
  return out;
}

absl::StatusOr<RankInfo> FromProto(const v1::RankInfo& rank) {
  RETURN_IF_ERROR(CheckText(rank.node(), "rank.node"));
  RETURN_IF_ERROR(CheckText(rank.job_id(), "rank.job_id"));
  RETURN_IF_ERROR(CheckText(rank.command(), "rank.command"));
  RETURN_IF_ERROR(CheckRange(rank.pid(), 0, INT32_MAX, "rank.pid"));
  RETURN_IF_ERROR(CheckRange(rank.rank(), 0, INT32_MAX, "rank.rank"));
  RETURN_IF_ERROR(CheckRange(rank.world_size(), 0, INT32_MAX, "rank.world_size"));
  RETURN_IF_ERROR(CheckRange(rank.source(), 0, v1::RANK_SOURCE_SLURM, "rank.source"));
  RankInfo out;
  out.node = rank.node();
  out.pid = rank.pid();
  out.uid = rank.uid();
  out.start_ticks = rank.start_ticks();
  out.rank = rank.rank();
  out.world_size = rank.world_size();
  out.source = static_cast<RankSource>(rank.source());
  out.job_id = rank.job_id();
  out.command = rank.command();
  return out;
}

v1::SourceRange ToProto(const SourceRange& source) {
  v1::SourceRange out;
  out.set_file(CleanText(source.file));
  out.set_first_line(source.first_line);
  out.set_last_line(source.last_line);
  return out;
}

absl::StatusOr<SourceRange> FromProto(const v1::SourceRange& source) {
  RETURN_IF_ERROR(CheckText(source.file(), "source.file"));
  RETURN_IF_ERROR(CheckRange(source.first_line(), 0, INT32_MAX, "source.first_line"));
  RETURN_IF_ERROR(CheckRange(source.last_line(), 0, INT32_MAX, "source.last_line"));
  return SourceRange{source.file(), source.first_line(), source.last_line()};
}

CodeRangesProto ToProto(const std::vector<CodeRange>& ranges) {
  CodeRangesProto out;
  for (const CodeRange& range : ranges) {
    v1::CodeRange* to = out.Add();
    to->set_low(range.low);
    to->set_high(range.high);
  }
  return out;
}

absl::StatusOr<std::vector<CodeRange>> FromProto(const CodeRangesProto& ranges,
                                                 const CodeRange& first, absl::string_view field) {
  RETURN_IF_ERROR(CheckCount(ranges.size(), kMaxCodeParts, field));
  std::vector<CodeRange> out;
  for (const v1::CodeRange& range : ranges) {
    const bool after = out.empty() || range.low() >= out.back().high;
    const bool apart = range.high() <= first.low || range.low() >= first.high;
    if (range.low() >= range.high() || !after || !apart)
      return absl::InvalidArgumentError(absl::StrCat(field, ": not sorted and disjoint"));
    out.push_back({range.low(), range.high()});
  }
  return out;
}

v1::LoopFacts ToProto(const LoopFacts& loop) {
  v1::LoopFacts out;
  out.set_header(loop.header);
  out.set_parent_header(loop.parent_header);
  out.set_depth(loop.depth);
  out.set_innermost(loop.innermost);
  out.set_irreducible(loop.irreducible);
  out.set_low(loop.low);
  out.set_high(loop.high);
  out.set_block_count(loop.block_count);
  out.set_instruction_count(loop.instruction_count);
  *out.mutable_source() = ToProto(loop.source);
  out.set_inlined_from(CleanText(loop.inlined_from));
  *out.mutable_further_parts() = ToProto(loop.further_parts);
  return out;
}

absl::StatusOr<LoopFacts> FromProto(const v1::LoopFacts& loop) {
  RETURN_IF_ERROR(CheckRange(loop.depth(), 1, INT32_MAX, "loop.depth"));
  RETURN_IF_ERROR(CheckRange(loop.block_count(), 0, INT32_MAX, "loop.block_count"));
  RETURN_IF_ERROR(CheckRange(loop.instruction_count(), 0, INT32_MAX, "loop.instruction_count"));
  RETURN_IF_ERROR(CheckText(loop.inlined_from(), "loop.inlined_from"));
  if (loop.low() > loop.high()) return absl::InvalidArgumentError("loop.low: above loop.high");
  LoopFacts out;
  out.header = loop.header();
  out.parent_header = loop.parent_header();
  out.depth = loop.depth();
  out.innermost = loop.innermost();
  out.irreducible = loop.irreducible();
  out.low = loop.low();
  out.high = loop.high();
  out.block_count = loop.block_count();
  out.instruction_count = loop.instruction_count();
  ASSIGN_OR_RETURN(out.source, FromProto(loop.source()));
  out.inlined_from = loop.inlined_from();
  ASSIGN_OR_RETURN(out.further_parts,
                   FromProto(loop.further_parts(), {out.low, out.high}, "loop.further_parts"));
  return out;
}

v1::CodeLocation ToProto(const CodeLocation& location) {
  v1::CodeLocation out;
  out.set_category(WireEnum<v1::Category>(location.category));
  out.set_module_id(CleanText(location.module_id));
  out.set_module_path(CleanText(location.module_path));
  out.set_function(CleanText(location.function));
  out.set_function_low(location.function_low);
  out.set_openmp_outlined(location.openmp == OpenMpKind::kOutlined);
  out.set_waiting(location.loop_kind == LoopKind::kWaiting);
  if (location.loop.has_value()) *out.mutable_loop() = ToProto(*location.loop);
  *out.mutable_source() = ToProto(location.source);
  if (location.category != Category::kKernel) return out;
  out.set_kernel_cause(WireEnum<v1::KernelCause>(location.kernel_cause));
  out.set_kernel_caller(CleanText(location.kernel_caller));
  return out;
}

absl::StatusOr<CodeLocation> FromProto(const v1::CodeLocation& location) {
  RETURN_IF_ERROR(CheckText(location.module_id(), "location.module_id"));
  RETURN_IF_ERROR(CheckText(location.module_path(), "location.module_path"));
  RETURN_IF_ERROR(CheckText(location.function(), "location.function"));
  CodeLocation out;
  ASSIGN_OR_RETURN(out.category,
                   ModelEnum(location.category(), Category::kUnknown, "location.category"));
  out.module_id = location.module_id();
  out.module_path = location.module_path();
  out.function = location.function();
  out.function_low = location.function_low();
  out.openmp = location.openmp_outlined() ? OpenMpKind::kOutlined : OpenMpKind::kNone;
  out.loop_kind = location.waiting() ? LoopKind::kWaiting : LoopKind::kCompute;
  if (location.has_loop()) {
    ASSIGN_OR_RETURN(out.loop, FromProto(location.loop()));
  }
  ASSIGN_OR_RETURN(out.source, FromProto(location.source()));
  RETURN_IF_ERROR(ReadKernelEntry(location, out));
  return out;
}

}  // namespace perfd::wire
