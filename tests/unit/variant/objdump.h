// tests/unit/variant/objdump.h - machine code as objdump reads it, and whether that is what our own decoder reads.
//
// Shape    Disassemble: every line of one run of objdump, in order. Difference is empty where instruction and line agree in
//          name, length and all operands; the two spell some names differently, and only these are translated.
// Source   GNU Binutils 2.40, objdump(1), AT&T syntax; Zydis 4.0, ZYDIS_FORMATTER_STYLE_ATT.
#ifndef TESTS_UNIT_VARIANT_OBJDUMP_H_
#define TESTS_UNIT_VARIANT_OBJDUMP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/variant/instruction.h"

namespace perfd::agent {

struct ListedLine {
  uint64_t address = 0;
  uint64_t length = 0;
  int data_segments = 0;  // prefixes that mean nothing without a memory operand
  std::string mnemonic;   // "nop" for all its forms
  std::vector<std::string> operands;
  std::optional<uint64_t> target;  // of a rip-relative operand

  bool IsNop() const { return mnemonic == "nop"; }
  std::string Text() const;
};

std::vector<ListedLine> Disassemble(uint64_t address, const std::vector<uint8_t>& bytes);

// with_target: that of a branch.
std::string Difference(const LoopInstruction& instruction, const ListedLine& line,
                       bool with_target = true);

// What the line does to memory, prefetches aside. The thread block, behind GS, is not counted.
bool TouchesMemory(const ListedLine& line);
bool WritesMemory(const ListedLine& line);

}  // namespace perfd::agent

#endif  // TESTS_UNIT_VARIANT_OBJDUMP_H_
