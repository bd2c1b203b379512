// The reader's answers. They describe files that users control: nothing in them is trusted.
#include "core/base/status_macros.h"
#include "core/wire/check/check.h"
#include "core/wire/parts.h"
#include "core/wire/wire.h"

namespace perfd::wire {
namespace {

static_assert(static_cast<int>(LinesProblem::kDamaged) + 1 == v1::LINES_PROBLEM_DAMAGED);
static_assert(static_cast<int>(FunctionSource::kGuess) + 1 == v1::FUNCTION_SOURCE_GUESS);

// The reader may also say that it could not do it.
absl::Status ReplyStatus(const v1::ReaderReply& reply) {
  if (reply.error_code() == 0) return absl::OkStatus();
  RETURN_IF_ERROR(CheckRange(reply.error_code(), 1,
                             static_cast<int>(absl::StatusCode::kUnauthenticated),
                             "reply.error_code"));
  RETURN_IF_ERROR(CheckText(reply.error(), "reply.error"));
  return absl::Status(static_cast<absl::StatusCode>(reply.error_code()), reply.error());
}

absl::Status CheckSegment(const v1::Segment& segment) {
  const uint64_t size = segment.file_size();
  if (segment.file_offset() > UINT64_MAX - size || segment.virtual_address() > UINT64_MAX - size)
    return absl::InvalidArgumentError("reply.segments: beyond the end of the address space");
  return absl::OkStatus();
}

void FillFunction(const FunctionFacts& function, v1::FunctionFacts& out) {
  out.set_name(CleanText(function.name));
  out.set_low(function.low);
  out.set_high(function.high);
  *out.mutable_further_parts() = ToProto(function.further_parts);
  out.set_source(WireEnum<v1::FunctionSource>(function.source));
  out.set_openmp_outlined(function.openmp == OpenMpKind::kOutlined);
  *out.mutable_declaration() = ToProto(function.declaration);
  for (const LoopFacts& loop : function.loops) *out.add_loops() = ToProto(loop);
  out.set_note(CleanText(function.note));
  for (const LoopSpan& span : function.spans) {
    v1::LoopSpan* to = out.add_spans();
    to->set_low(span.low);
    to->set_high(span.high);
    to->set_loop(span.loop);
  }
}

// Lookup by address relies on the order.
absl::Status ReadSpans(const v1::FunctionFacts& function, FunctionFacts& out) {
  RETURN_IF_ERROR(CheckCount(function.spans_size(), kMaxSpans, "function.spans"));
  uint64_t end = 0;
  for (const v1::LoopSpan& span : function.spans()) {
    if (span.low() < end || span.high() <= span.low())
      return absl::InvalidArgumentError("function.spans: not sorted and disjoint");
    if (span.loop() >= out.loops.size())
      return absl::InvalidArgumentError("function.spans.loop: outside the function's loops");
    end = span.high();
    out.spans.push_back({span.low(), span.high(), span.loop()});
  }
  return absl::OkStatus();
}

absl::StatusOr<FunctionFacts> ReadFunction(const v1::FunctionFacts& function) {
  RETURN_IF_ERROR(CheckText(function.name(), "function.name"));
  RETURN_IF_ERROR(CheckText(function.note(), "function.note"));
  RETURN_IF_ERROR(CheckCount(function.loops_size(), kMaxLoops, "function.loops"));
  if (function.low() > function.high())
    return absl::InvalidArgumentError("function.low: above function.high");
  FunctionFacts out;
  out.name = function.name();
  out.low = function.low();
  out.high = function.high();
  ASSIGN_OR_RETURN(out.further_parts, FromProto(function.further_parts(), {out.low, out.high},
                                                "function.further_parts"));
  ASSIGN_OR_RETURN(out.source,
                   ModelEnum(function.source(), FunctionSource::kGuess, "function.source"));
  out.openmp = function.openmp_outlined() ? OpenMpKind::kOutlined : OpenMpKind::kNone;
  ASSIGN_OR_RETURN(out.declaration, FromProto(function.declaration()));
  for (const v1::LoopFacts& loop : function.loops()) {
    ASSIGN_OR_RETURN(LoopFacts read, FromProto(loop));
    out.loops.push_back(std::move(read));
  }
  out.note = function.note();
  RETURN_IF_ERROR(ReadSpans(function, out));
  return out;
}

}  // namespace

v1::ReaderReply ToProto(const ModuleFacts& facts) {
  v1::ReaderReply out;
  out.set_build_id(CleanText(facts.build_id));
  out.set_code_hash(CleanText(facts.code_hash));
  out.set_has_lines(facts.has_lines);
  out.set_lines_problem(WireEnum<v1::LinesProblem>(facts.lines_problem));
  out.set_lines_unread(facts.lines_unread);
  out.set_file_device(facts.file.device);
  out.set_file_inode(facts.file.inode);
  out.set_file_bytes(facts.file.bytes);
  out.set_file_modified_ns(facts.file.modified_ns);
  out.set_has_symbols(facts.has_symbols);
  for (const ModuleSegment& segment : facts.segments) {
    v1::Segment* to = out.add_segments();
    to->set_file_offset(segment.file_offset.value());
    to->set_virtual_address(segment.virtual_address.value());
    to->set_file_size(segment.file_size);
    to->set_executable(segment.executable);
  }
  return out;
}

absl::StatusOr<ModuleFacts> ModuleFactsFromProto(const v1::ReaderReply& reply) {
  RETURN_IF_ERROR(ReplyStatus(reply));
  RETURN_IF_ERROR(CheckText(reply.build_id(), "reply.build_id", 256));
  RETURN_IF_ERROR(CheckText(reply.code_hash(), "reply.code_hash", 256));
  RETURN_IF_ERROR(CheckCount(reply.segments_size(), kMaxSegments, "reply.segments"));
  ModuleFacts out;
  out.build_id = reply.build_id();
  out.code_hash = reply.code_hash();
  out.has_lines = reply.has_lines();
  ASSIGN_OR_RETURN(out.lines_problem,
                   ModelEnum(reply.lines_problem(), LinesProblem::kDamaged, "reply.lines_problem"));
  out.lines_unread = reply.lines_unread();
  out.file = {reply.file_device(), reply.file_inode(), reply.file_bytes(),
              reply.file_modified_ns()};
  out.has_symbols = reply.has_symbols();
  for (const v1::Segment& segment : reply.segments()) {
    RETURN_IF_ERROR(CheckSegment(segment));
    out.segments.push_back({segment.file_offset(), segment.virtual_address(), segment.file_size(),
                            segment.executable()});
  }
  return out;
}

v1::ReaderReply ToProto(const CodeFacts& facts) {
  v1::ReaderReply out;
  for (const FunctionFacts& function : facts.functions)
    FillFunction(function, *out.add_functions());
  for (ElfAddress address : facts.unresolved) out.add_unresolved(address.value());
  return out;
}

absl::StatusOr<CodeFacts> CodeFactsFromProto(const v1::ReaderReply& reply) {
  RETURN_IF_ERROR(ReplyStatus(reply));
  RETURN_IF_ERROR(CheckCount(reply.functions_size(), kMaxFunctions, "reply.functions"));
  RETURN_IF_ERROR(CheckCount(reply.unresolved_size(), kMaxFunctions, "reply.unresolved"));
  CodeFacts out;
  for (const v1::FunctionFacts& function : reply.functions()) {
    ASSIGN_OR_RETURN(FunctionFacts read, ReadFunction(function));
    out.functions.push_back(std::move(read));
  }
  out.unresolved.assign(reply.unresolved().begin(), reply.unresolved().end());
  return out;
}

}  // namespace perfd::wire
