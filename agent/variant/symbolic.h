// agent/variant/symbolic.h - symbolic values of general registers within one pass through a loop; grouping of accesses.
//
// Shape    a value is a root (what a register held at the header, or what an instruction or a join made) plus an offset.
//          Accesses whose base, index and scale have the same roots belong to one group and differ by a constant. What a loop
//          inside changes has another root at its header: within it, and after it, groups are those of its last pass.
// Source   Bendifallah 2015, 4.1 (GR subset, table 4.2).
#ifndef AGENT_VARIANT_SYMBOLIC_H_
#define AGENT_VARIANT_SYMBOLIC_H_

#include <array>
#include <cstdint>
#include <vector>

#include "agent/variant/loop_code.h"

namespace perfd::agent {

struct SymbolicValue {
  uint32_t root = 0;  // below 16: the register at the header
  uint64_t offset = 0;

  bool operator==(const SymbolicValue&) const = default;
};
using SymbolicState = std::array<SymbolicValue, 16>;

// Before each instruction.
std::vector<SymbolicState> SymbolicStates(const LoopCode& loop);

// Fills Role::group, Role::offset and LoopCode::groups.
void AssignGroups(LoopCode* loop);

// What a store and a load of one loop, whose groups are assigned, may have to do with each other.
class Aliases {
 public:
  explicit Aliases(const LoopCode& loop);

  // The two name the same bytes, or parts of them, in one and the same pass.
  bool SamePlace(uint32_t store, uint32_t load) const;
  // The operand names the same bytes in every pass.
  bool IsInvariant(const MemoryOperand& m) const;
  // The two name the same bytes, or parts of them, in every pass.
  bool SameOperand(uint32_t store, uint32_t load) const;
  // Whether what `store` writes may be what `load` reads, in this or another pass through the loop.
  bool MayAlias(uint32_t store, uint32_t load) const;

 private:
  bool AreApart(uint32_t store, uint32_t load) const;

  const LoopCode& loop_;
  RegisterSet written_ = 0;
};

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_SYMBOLIC_H_
