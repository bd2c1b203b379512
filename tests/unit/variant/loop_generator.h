// tests/unit/variant/loop_generator.h - random loops that end, and the code around them.
//
// Shape    several blocks, forward branches, several exits, body sometimes in two parts in the wrong order with a gap
//          between; operands in an array, rip-relative ones, flags that live round the loop. On request with floating point
//          (float_code.h), which then may decide branches too, and with loops inside, at most two deep: their ends are constant,
//          follow the index of the loop, or depend on what was computed; some are left early, some leave the whole loop.
#ifndef TESTS_UNIT_VARIANT_LOOP_GENERATOR_H_
#define TESTS_UNIT_VARIANT_LOOP_GENERATOR_H_

#include <random>

#include "agent/variant/loop_code.h"
#include "tests/unit/variant/float_code.h"
#include "tests/unit/variant/native_run.h"

namespace perfd::agent {

inline constexpr int kLoopIndex = 1;    // RCX: 0, 1, 2 ...
inline constexpr int kLoopCounter = 8;  // R8: counts down
// R15, R14: count down in loops inside; no other instruction of a nest writes them.
inline constexpr int kInnerCounters[] = {15, 14};

enum class Nest { kNone, kLoops };

struct GeneratedLoop {
  LoopBytes bytes;
  uint64_t stub = 0;  // leaves without noting an exit
  int trips = 0;
};

// The code is written to arena.text().
GeneratedLoop GenerateLoop(const Arena& arena, std::mt19937* random, Floats floats = Floats::kNone,
                           Nest nest = Nest::kNone);
// Registers and memory to start it with.
MachineState GenerateState(const Arena& arena, const GeneratedLoop& loop, std::mt19937* random,
                           Floats floats = Floats::kNone);

}  // namespace perfd::agent

#endif  // TESTS_UNIT_VARIANT_LOOP_GENERATOR_H_
