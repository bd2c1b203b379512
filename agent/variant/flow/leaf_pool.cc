#include "agent/variant/flow/leaf_pool.h"

#include <algorithm>
#include <array>

#include "agent/variant/flow/leaf_calls.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kLine = 64;
constexpr uint64_t kExitBytes = 32;
// push 10(%rip); jmp *12(%rip); then the two words that they read.
constexpr std::array<uint8_t, 16> kLeave = {0xff, 0x35, 10, 0, 0,    0,    0xff, 0x25,
                                            12,   0,    0,  0, 0xcc, 0xcc, 0xcc, 0xcc};

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

void PutWord(uint64_t value, uint8_t* at) {
  for (int n = 0; n < 8; ++n) at[n] = static_cast<uint8_t>(value >> (8 * n));
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
  return LinesOf(loop).size() * kLine + loop.leaves.exits.size() * kExitBytes;
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
    std::copy(kLeave.begin(), kLeave.end(), &pool[at]);
    PutWord(exit.back, &pool[at + 16]);
    PutWord(exit.to, &pool[at + 24]);
    MoveExit(exit.exit, address + at, loop);
    exit.exit = address + at;
    at += kExitBytes;
  }
  return pool;
}

}  // namespace perfd::agent
