#include "agent/variant/flow/leaf_pool.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "agent/variant/flow/leaf_calls.h"
#include "agent/variant/flow/leaf_frame.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kLine = 64;
// Lines of memory that constants lie in, sorted.
std::vector<uint64_t> LinesOf(const LoopCode& loop) {
  std::vector<uint64_t> lines;
  for (const Constant& constant : loop.leaves.constants) {
    for (uint64_t line = constant.range.low / kLine; line <= (constant.range.high - 1) / kLine;
         ++line)
      lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return lines;
}

// Of an address in one of the lines, from the begin of the pool.
uint64_t OffsetOf(const std::vector<uint64_t>& lines, uint64_t address) {
  const auto line = std::lower_bound(lines.begin(), lines.end(), address / kLine);
  return static_cast<uint64_t>(line - lines.begin()) * kLine + address % kLine;
}

void Append(std::initializer_list<uint8_t> bytes, std::vector<uint8_t>* code) {
  code->insert(code->end(), bytes);
}

// lea -bytes(%rsp), %rsp: no flag changes.
void Lower(int64_t bytes, std::vector<uint8_t>* code) {
  if (bytes != 0) Append({0x48, 0x8d, 0x64, 0x24, static_cast<uint8_t>(-bytes)}, code);
}

// Pushes what the calls would have pushed, each at its place, and goes on in the leaf's text.
std::vector<uint8_t> WayOut(const LeafExit& exit) {
  std::vector<uint8_t> code;
  std::vector<std::pair<size_t, uint64_t>> words;  // what the instruction that ends there reads
  int64_t depth = 0;
  for (const ReturnAddress& address : exit.returns) {
    Lower(address.depth - kReturnAddressBytes - depth, &code);
    Append({0xff, 0x35, 0, 0, 0, 0}, &code);  // push word(%rip)
    words.emplace_back(code.size(), address.back);
    depth = address.depth;
  }
  Lower(exit.depth - depth, &code);
  Append({0xff, 0x25, 0, 0, 0, 0}, &code);  // jmp *word(%rip)
  words.emplace_back(code.size(), exit.to);
  code.resize((code.size() + 7) / 8 * 8, 0xcc);
  for (const auto& [end, word] : words) {
    code[end - 4] = static_cast<uint8_t>(code.size() - end);
    for (int n = 0; n < 8; ++n) code.push_back(static_cast<uint8_t>(word >> (8 * n)));
  }
  return code;
}

void MoveOperands(const std::vector<uint64_t>& lines, uint64_t pool, LoopCode* loop) {
  for (LoopInstruction& i : loop->instructions) {
    if (ReadsConstant(*loop, i)) i.memory->target = pool + OffsetOf(lines, i.memory->target);
  }
}

void MoveExit(uint64_t from, uint64_t to, LoopCode* loop) {
  for (LoopInstruction& i : loop->instructions)
    if (i.target == from) i.target = to;
  for (std::vector<uint64_t>& exits : loop->exits)
    std::replace(exits.begin(), exits.end(), from, to);
}

}  // namespace

uint64_t LeafPoolBytes(const LoopCode& loop) {
  uint64_t bytes = LinesOf(loop).size() * kLine;
  for (const LeafExit& exit : loop.leaves.exits) bytes += WayOut(exit).size();
  return bytes;
}

std::vector<uint8_t> UseLeafPool(uint64_t address, LoopCode* loop) {
  const std::vector<uint64_t> lines = LinesOf(*loop);
  std::vector<uint8_t> pool(LeafPoolBytes(*loop), 0xcc);
  for (const Constant& constant : loop->leaves.constants)
    std::copy(constant.bytes.begin(), constant.bytes.end(),
              &pool[OffsetOf(lines, constant.range.low)]);
  MoveOperands(lines, address, loop);
  uint64_t at = lines.size() * kLine;
  for (LeafExit& exit : loop->leaves.exits) {
    const std::vector<uint8_t> code = WayOut(exit);
    std::copy(code.begin(), code.end(), &pool[at]);
    MoveExit(exit.exit, address + at, loop);
    exit.exit = address + at;
    at += code.size();
  }
  return pool;
}

}  // namespace perfd::agent
