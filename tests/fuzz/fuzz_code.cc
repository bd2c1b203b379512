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

bool InOnePart(const perfd::agent::FunctionCode& code, const perfd::CodeRange& range) {
  return std::any_of(code.parts.begin(), code.parts.end(), [&](const auto& part) {
    return part.low <= range.low && range.high <= part.high();
  });
}

void CheckLoops(const perfd::agent::LoopAnalysis& analysis,
                const perfd::agent::FunctionCode& code) {
  for (const perfd::LoopFacts& loop : analysis.loops) {
    Check(loop.high > loop.low && loop.header >= loop.low && loop.header < loop.high);
    Check(InOnePart(code, {loop.low, loop.high}));
    for (const perfd::CodeRange& part : loop.further_parts) Check(InOnePart(code, part));
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

// The last bytes double as memory for jump tables. The function lies in two parts, and is entered in the second one.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  perfd::agent::FunctionCode code;
  constexpr uint64_t kLow = 0x1000;
  const size_t middle = size / 2;
  const uint64_t gap = size % 2 * 0x20;  // or they touch
  code.entry = kLow + middle + gap;
  code.parts = {{kLow, bytes.first(middle)}, {code.entry, bytes.subspan(middle)}};
  code.read = [bytes, low = kLow](uint64_t address, size_t count) -> std::span<const std::byte> {
    if (address < low || address - low > bytes.size() || count > bytes.size() - (address - low))
      return {};
    return bytes.subspan(address - low, count);
  };
  code.never_returns = [](uint64_t callee) { return (callee & 7) == 3; };
  code.landing_pads = {{{kLow, kLow + 8}, kLow + size / 3},
                       {{kLow + 8, kLow + size}, code.entry + size / 4}};
  perfd::agent::FunctionLines lines;
  lines.files = {"", "a.c"};
  lines.frames.push_back({"f", 0, 0, 0, 1, {{kLow, kLow + size + gap}}});
  for (uint64_t i = 0; i < size; i += 5)
    lines.rows.push_back({kLow + i, 1, static_cast<int32_t>(i % 7)});
  CheckLoops(perfd::agent::AnalyseLoops(code, lines), code);
  return 0;
}
