// agent/binary/flow/instruction.h - one decoded x86-64 instruction, reduced to what control flow needs.
//
// Shape    a plain value; `target`, `reference`, `immediate` are zero where they do not apply.
// Units    addresses are ELF virtual addresses; length in bytes (1..15).
#ifndef AGENT_BINARY_FLOW_INSTRUCTION_H_
#define AGENT_BINARY_FLOW_INSTRUCTION_H_

#include <cstdint>

namespace perfd::agent {

enum class Flow : uint8_t {
  kPlain,        // goes on with the next instruction
  kConditional,  // next instruction or target (jcc, loop, jrcxz, xbegin)
  kJump,         // target
  kIndirectJump,  // computed, as for a switch: `reference` holds the table when it is part of the operand
  kSlotJump,  // through a pointer in memory (GOT, virtual function): a call that does not come back here
  kCall,  // target, then the next instruction
  kIndirectCall,
  kReturn,
  kTrap,  // ud2, hlt, int3: never goes on
};

// What the instruction may tell about a jump table nearby.
enum class Clue : uint8_t {
  kNone,
  kTableAddress,   // lea reg, [rip + x]: reference
  kAbsoluteTable,  // memory operand [x + index * 8]: reference
  kCompare,        // cmp or sub with an immediate: sets the flags for kAbove or kAboveOrEqual
  kMask,           // and with an immediate
  kAbove,          // ja, jbe
  kAboveOrEqual,   // jae, jb
};

struct Instruction {
  uint64_t address = 0;
  uint64_t target = 0;     // of a direct jump, branch or call
  uint64_t reference = 0;  // memory address that the operands name without a general register
  uint64_t immediate = 0;
  uint8_t length = 0;
  Flow flow = Flow::kPlain;
  Clue clue = Clue::kNone;
  bool padding = false;  // no operation, or a trap that compilers fill gaps with

  uint64_t end() const { return address + length; }
  bool operator==(const Instruction&) const = default;
};

// True when the instruction after it can be executed next.
inline bool FallsThrough(const Instruction& i) {
  return i.flow == Flow::kPlain || i.flow == Flow::kConditional || i.flow == Flow::kCall ||
         i.flow == Flow::kIndirectCall;
}

inline bool HasTargetInCode(const Instruction& i) {
  return i.flow == Flow::kConditional || i.flow == Flow::kJump;
}

}  // namespace perfd::agent

#endif  // AGENT_BINARY_FLOW_INSTRUCTION_H_
