// Machine code to loops: whatever the bytes, blocks and loops keep what they promise.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "agent/binary/loop_facts.h"

namespace {

void Check(bool condition) {
  if (!condition) std::abort();
}

void CheckLoops(const perfd::agent::LoopAnalysis& analysis,
                const perfd::agent::FunctionCode& code) {
  for (const perfd::LoopFacts& loop : analysis.loops) {
    Check(loop.low >= code.low && loop.high > loop.low);
    Check(loop.header >= loop.low && loop.header < loop.high);
    Check(loop.block_count > 0 && loop.instruction_count >= loop.block_count);
    Check((loop.depth == 1) == (loop.parent_header == 0));
  }
  uint64_t end = 0;
  for (const perfd::LoopSpan& span : analysis.spans) {
    Check(span.low >= end && span.high > span.low && span.loop < analysis.loops.size());
    end = span.high;
  }
}

}  // namespace

// The last bytes double as memory for jump tables.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  perfd::agent::FunctionCode code;
  code.low = 0x1000;
  code.bytes = bytes;
  code.read = [bytes, low = code.low](uint64_t address,
                                      size_t count) -> std::span<const std::byte> {
    if (address < low || address - low > bytes.size() || count > bytes.size() - (address - low))
      return {};
    return bytes.subspan(address - low, count);
  };
  code.never_returns = [](uint64_t callee) { return (callee & 7) == 3; };
  perfd::agent::FunctionLines lines;
  lines.files = {"", "a.c"};
  lines.frames.push_back({"f", 0, 0, 0, 1, {{code.low, code.high()}}});
  for (uint64_t i = 0; i < size; i += 5)
    lines.rows.push_back({code.low + i, 1, static_cast<int32_t>(i % 7)});
  CheckLoops(perfd::agent::AnalyseLoops(code, lines), code);
  return 0;
}
