// agent/binary/flow/explorer.h - every instruction of a function, in all its parts, found by following its control flow.
//
// Shape    Explore(code) -> steps. Phase 0 is what the entry reaches; each later phase starts at bytes that nothing
//          reached before (targets of unresolved jumps, what is never run).
// Errors   none: what could not be followed is counted.
// Threads  thread-safe (pure).
#ifndef AGENT_BINARY_FLOW_EXPLORER_H_
#define AGENT_BINARY_FLOW_EXPLORER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "agent/binary/flow/instruction.h"
#include "agent/binary/flow/jump_table.h"
#include "agent/binary/flow/part_map.h"
#include "agent/binary/frames/exception_table.h"

namespace perfd::agent {

// The bytes of one function and what may be asked about the rest of the module.
struct FunctionCode {
  uint64_t entry = 0;                                  // in one of the parts
  std::vector<CodePart> parts;                         // sorted, disjoint
  ReadMemory read;                                     // may be empty
  std::function<bool(uint64_t callee)> never_returns;  // may be empty
  std::vector<LandingPad> landing_pads = {};           // sorted
};

inline constexpr uint32_t kNoStep = UINT32_MAX;
inline constexpr size_t kMaxFunctionBytes = size_t{4} << 20;
inline constexpr size_t kMaxInstructions = 1'000'000;

struct Step {
  Instruction instruction;
  uint32_t previous = kNoStep;  // the step that led here first
  uint32_t phase = 0;
  bool ends = false;  // a call that never returns
  uint64_t landing_pad =
      0;  // where an exception out of this call goes on; 0: nowhere in the function
};

struct TableJump {
  uint32_t step = 0;
  std::vector<uint64_t> targets;
};

struct Exploration {
  PartMap map;
  std::vector<Step> steps;
  std::vector<uint32_t> step_at;  // by position in the PartMap; kNoStep where no instruction starts
  std::vector<uint32_t> roots;    // first step of each phase
  std::vector<TableJump> tables;
  std::vector<uint32_t> unresolved;  // indirect jumps without a known target
  size_t undecodable = 0;            // places where decoding stopped
  bool truncated = false;            // kMaxFunctionBytes or kMaxInstructions
};

Exploration Explore(const FunctionCode& code);

}  // namespace perfd::agent

#endif  // AGENT_BINARY_FLOW_EXPLORER_H_
