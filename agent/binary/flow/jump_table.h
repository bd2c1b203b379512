// agent/binary/flow/jump_table.h - where an indirect jump can go, when it is a compiler's switch table.
//
// Shape    FindJumpTable(path, memory): path is the instructions that lead to the jump, the jump first.
// Errors   nothing: not a table that is understood; never a guess beyond the bound or the code.
// Source   tables as gcc and clang write them: 4-byte offsets from the table (lea, movslq, add, jmp) and 8-byte
//          addresses (jmp *table(,index,8)); the bound is the cmp/sub + ja|jae or the and before it.
#ifndef AGENT_BINARY_FLOW_JUMP_TABLE_H_
#define AGENT_BINARY_FLOW_JUMP_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "agent/binary/flow/instruction.h"
#include "agent/binary/flow/part_map.h"

namespace perfd::agent {

// Bytes [address, address + size) of the module, or an empty span when they are not all there.
using ReadMemory = std::function<std::span<const std::byte>(uint64_t address, size_t size)>;

inline constexpr size_t kMaxTableEntries = 4096;

struct TableScope {
  const PartMap* function = nullptr;  // entries outside of it are exits
  const ReadMemory* read = nullptr;
};

// Targets inside the function, sorted, each once.
std::vector<uint64_t> FindJumpTable(std::span<const Instruction> path, const TableScope& scope);

}  // namespace perfd::agent

#endif  // AGENT_BINARY_FLOW_JUMP_TABLE_H_
