// tests/unit/variant/float_code.h - random floating-point instructions whose results stay finite, in three encodings.
//
// Shape    values start between 0.97 and 1.03; variables are multiplied and divided by constants only, added to constants only,
//          and never subtracted, so they are positive and, after some thousand operations, still far from the ends of
//          single precision. Doubles and singles live in registers and memory of their own; integer code touches neither.
// Source   Intel SDM vol. 2, 2.3.5 (VEX), 2.7.1 (EVEX); opcodes of vol. 2, ADDPS to VSQRTSD, VFMADD132PD.
#ifndef TESTS_UNIT_VARIANT_FLOAT_CODE_H_
#define TESTS_UNIT_VARIANT_FLOAT_CODE_H_

#include <cstdint>
#include <random>
#include <vector>

#include "tests/unit/variant/native_run.h"

namespace perfd::agent {

enum class Floats {
  kNone,
  kSse,
  kVex,   // to 256 bits, with FMA
  kEvex,  // to 512 bits, registers 16 to 31, masks, broadcasts, rounding
};

inline constexpr int kFloatPointer = 5;  // RBP: no other instruction writes it

bool CanRun(Floats floats);

// Appends an instruction to `bytes`, which start at address `start`.
void AppendFloat(Floats floats, const Arena& arena, uint64_t start, std::mt19937* random,
                 std::vector<uint8_t>* bytes);
// ucomisd or ucomiss of a variable with a constant.
void AppendFloatComparison(Floats floats, const Arena& arena, uint64_t start, std::mt19937* random,
                           std::vector<uint8_t>* bytes);

// The registers and memory that these instructions use.
void FillFloats(Floats floats, const Arena& arena, std::mt19937* random, MachineState* state);
// Every variable, in registers and memory, is a number.
bool AllFinite(Floats floats, const MachineState& state, const std::vector<uint8_t>& memory);

}  // namespace perfd::agent

#endif  // TESTS_UNIT_VARIANT_FLOAT_CODE_H_
