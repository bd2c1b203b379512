// agent/variant/flow/dataflow.h - liveness, reaching definitions and loop-carried uses over the edges of a loop.
//
// Shape    works on Effects, one per original instruction, so that it serves the loop and its changed copies alike.
// Source   Aho et al., Compilers, 9.2; recurrences: Bendifallah 2015, 6.2.
#ifndef AGENT_VARIANT_FLOW_DATAFLOW_H_
#define AGENT_VARIANT_FLOW_DATAFLOW_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "agent/variant/loop_code.h"

namespace perfd::agent {

struct Effect {
  RegisterSet reads = 0;
  RegisterSet writes = 0;
  RegisterSet kills = 0;
};

Effect EffectOf(const LoopInstruction& instruction);
// Of several instructions in a row.
Effect EffectOf(std::span<const LoopInstruction> instructions);
std::vector<Effect> Effects(const LoopCode& loop);

// Registers live before each instruction; `at_exit` are live where the loop is left.
std::vector<RegisterSet> LiveBefore(const LoopCode& loop, std::span<const Effect> effects,
                                    RegisterSet at_exit);

// Use-definition chains, all of them found at once.
class Definitions {
 public:
  Definitions(const LoopCode& loop, std::span<const Effect> effects);

  struct Reach {
    std::vector<uint32_t> from;  // instructions whose value may be read, in ascending order
    bool from_outside = false;   // or the value at the entry of the loop
  };
  // The definitions of register `number` that instruction `at` may read; none where it does not read that register.
  const Reach& Of(uint32_t at, int number) const;

 private:
  struct Uses {
    RegisterSet reads = 0;
    std::vector<Reach> reach;  // of each of them, in ascending order
  };

  static size_t Index(const Uses& uses, int number);

  std::vector<Uses> uses_;
  const Reach none_;
};

// A use of a register whose value may come from the iteration before, of the loop or of one inside it.
struct CarriedUse {
  uint32_t instruction = 0;
  int number = 0;
  uint32_t header = 0;  // of that loop

  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the operator for one of pointers
  auto operator<=>(const CarriedUse&) const = default;
};
std::vector<CarriedUse> CarriedUses(const LoopCode& loop, std::span<const Effect> effects);

// Carried uses of a copy that the loop does not have: dependences a change has added.
std::vector<CarriedUse> AddedRecurrences(const LoopCode& loop, std::span<const Effect> copy);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_FLOW_DATAFLOW_H_
