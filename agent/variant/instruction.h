// agent/variant/instruction.h - one machine instruction of a loop, as far as changing it needs to know.
//
// Shape    registers are bits of a RegisterSet: 16 general, 32 vector, 8 mask, the six status flags, DF, and one bit for
//          x87, MMX and control words together. `kills` are registers overwritten whole without being read.
// Units    run-time addresses; sizes in bytes.
// Source   Intel SDM vol. 1, 3.4 (registers) and 3.4.3 (EFLAGS); AMD64 APM vol. 2, 3.1.6.
#ifndef AGENT_VARIANT_INSTRUCTION_H_
#define AGENT_VARIANT_INSTRUCTION_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/base/address.h"

namespace perfd::agent {

using RegisterSet = uint64_t;
inline constexpr int kGeneralRegisters = 0;  // 16
inline constexpr int kVectorRegisters = 16;  // 32
inline constexpr int kMaskRegisters = 48;    // 8
inline constexpr int kCarryFlag = 56;
inline constexpr int kDirectionFlag = 62;
inline constexpr int kOtherState = 63;
inline constexpr int kStackPointer = 4;
inline constexpr RegisterSet kStatusFlags = 0x3full << kCarryFlag;  // CF PF AF ZF SF OF
inline constexpr RegisterSet kAllGeneral = 0xffffull;
inline constexpr RegisterSet kAllVector = 0xffffffffull << kVectorRegisters;

constexpr RegisterSet Bit(int number) {
  return RegisterSet{1} << number;
}

enum class LoopFlow : uint8_t { kPlain, kBranch, kJump, kCall, kEnd };

// What an instruction is, as far as its own bytes tell.
enum Trait : uint32_t {
  kLoads = 1u << 0,
  kStores = 1u << 1,
  kVectorOp = 1u << 2,    // SSE to AVX-512
  kArithmetic = 1u << 3,  // computes in a vector unit, moves and shuffles excluded
  kFloating = 1u << 4,    // arithmetic on floating point
  kDivides = 1u << 5,     // floating-point or integer division
  kSquareRoots = 1u << 6,
  kMoves = 1u << 7,  // copies its source, perhaps narrower, wider or repeated
  kNonTemporal = 1u << 8,
  kGathers = 1u << 9,
  kScatters = 1u << 10,
  kLocked = 1u << 11,
  kX87 = 1u << 12,
  kPrefetches = 1u << 13,
  kStringOp = 1u << 14,      // memory operands that are not written down in the instruction
  kMaskedMemory = 1u << 15,  // may touch less than its width
  kMergeMasked = 1u << 16,
  kBroadcasts = 1u << 17,   // EVEX embedded broadcast
  kRounds = 1u << 18,       // EVEX embedded rounding
  kAccumulates = 1u << 19,  // add, subtract, multiply, minimum, maximum, fused forms
  kVex = 1u << 20,
  kEvex = 1u << 21,
  kNopTrait = 1u << 22,
};

inline constexpr int kNoRegister = -1;
inline constexpr int kInstructionPointer = -2;

struct MemoryOperand {
  int base = kNoRegister;   // general register, or kInstructionPointer
  int index = kNoRegister;  // general register, or vector register number (VSIB)
  int scale = 1;
  int64_t displacement = 0;
  uint64_t target = 0;                // absolute address of a rip-relative operand
  bool thread_local_segment = false;  // FS
  bool vector_index = false;
  uint16_t index_bytes = 0;     // of a vector index, whole
  uint16_t data_bytes = 0;      // of the register a gather fills or a scatter empties, whole
  int lane_mask = kNoRegister;  // gathers of AVX2: the vector register whose sign bits choose lanes
  uint16_t bytes = 0;
  bool reads = false;
  bool writes = false;
};

// Where `source` is set: destination = this general register + by, 64 bits wide.
struct RegisterStep {
  int source = kNoRegister;
  int64_t by = 0;
};

struct InstructionBytes {
  uint8_t length = 0;
  std::array<uint8_t, 15> bytes{};
  std::vector<uint8_t> in_copies;  // what copies hold in its place; empty: the same

  std::span<const uint8_t> original() const { return std::span(bytes).first(length); }
  std::span<const uint8_t> code() const {
    return in_copies.empty() ? original() : std::span(in_copies);
  }
};

struct LoopInstruction : InstructionBytes {
  uint64_t address = 0;
  ElfAddress listed = 0;  // for people; `text` has such addresses too
  std::string text;
  std::string mnemonic;
  uint32_t traits = 0;
  LoopFlow flow = LoopFlow::kPlain;
  uint64_t target = 0;          // of kBranch, kJump, direct kCall
  uint8_t displacement_at = 0;  // offset of a rip-relative displacement; 0: none
  RegisterSet reads = 0;
  RegisterSet writes = 0;
  RegisterSet kills = 0;
  RegisterSet address_reads = 0;        // the part of `reads` that forms addresses
  std::optional<MemoryOperand> memory;  // the explicit one
  int destination = kNoRegister;        // first visible operand when a register: bit number
  uint16_t destination_bytes = 0;
  int mask = kNoRegister;            // EVEX: 1..7
  std::optional<int64_t> immediate;  // the second of two operands, the first a register
  RegisterStep step;
  uint8_t branch_at =
      0;  // offset of the displacement of a direct branch; it is the rest of the instruction
  std::string refusal;  // non-empty: no copy can hold this instruction

  bool Is(uint32_t any) const { return (traits & any) != 0; }
  // Has an explicit memory operand that it reads or writes.
  bool Accesses() const { return memory.has_value() && (memory->reads || memory->writes); }
  uint64_t end() const { return address + length; }
  uint64_t Listed(uint64_t run_time) const { return run_time - (address - listed.value()); }
};

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_INSTRUCTION_H_
