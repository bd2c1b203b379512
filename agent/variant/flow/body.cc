#include "agent/variant/flow/body.h"

#include <algorithm>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "agent/variant/decode.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// Bytes of one function; larger ones are not read.
constexpr size_t kMaxFunctionBytes = size_t{4} << 20;

absl::StatusOr<std::vector<CodeRange>> Body(const LoopBytes& loop) {
  const uint64_t end = loop.address + loop.bytes.size();
  if (loop.bytes.empty() || loop.bytes.size() > kMaxFunctionBytes || end < loop.address)
    return absl::InvalidArgumentError("the function is empty or larger than 4 MiB");
  std::vector<CodeRange> sorted = loop.body;
  std::sort(sorted.begin(), sorted.end(),
            [](const CodeRange& a, const CodeRange& b) { return a.low < b.low; });
  std::vector<CodeRange> body;
  for (const CodeRange& r : sorted) {
    if (r.low >= r.high || r.low < loop.address || r.high > end)
      return absl::InvalidArgumentError("a range of the loop lies outside its function");
    if (!body.empty() && r.low < body.back().high)
      return absl::InvalidArgumentError("ranges of the loop overlap");
    if (!body.empty() && r.low == body.back().high) {
      body.back().high = r.high;
    } else {
      body.push_back(r);
    }
  }
  if (body.empty()) return absl::InvalidArgumentError("the loop has no range");
  return body;
}

absl::Status DecodeRange(const LoopBytes& bytes, const CodeRange& range, LoopCode* loop) {
  uint64_t at = range.low;
  while (at < range.high) {
    const std::span<const uint8_t> rest =
        std::span(bytes.bytes).subspan(at - bytes.address, range.high - at);
    std::optional<LoopInstruction> instruction = DecodeLoopInstruction(rest, at, bytes.bias);
    if (!instruction) {
      return absl::FailedPreconditionError(
          absl::StrCat("0x", absl::Hex((RuntimeAddress(at) - bytes.bias).value()),
                       ": the bytes are no known instruction"));
    }
    at = instruction->end();
    loop->instructions.push_back(*std::move(instruction));
    if (loop->instructions.size() > static_cast<size_t>(kMaxLoopInstructions)) {
      return absl::FailedPreconditionError(
          absl::StrCat("the loop has more than ", kMaxLoopInstructions, " instructions"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadBody(const LoopBytes& bytes, LoopCode* loop) {
  loop->bias = bytes.bias;
  loop->function = {bytes.address, bytes.address + bytes.bytes.size()};
  ASSIGN_OR_RETURN(loop->body, Body(bytes));
  for (const CodeRange& range : loop->body) RETURN_IF_ERROR(DecodeRange(bytes, range, loop));
  return absl::OkStatus();
}

}  // namespace perfd::agent
