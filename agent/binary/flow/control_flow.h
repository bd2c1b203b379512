// agent/binary/flow/control_flow.h - the control flow graph of one function.
//
// Shape    BuildControlFlow(code) -> blocks sorted by address; block i owns instructions [first, first + count).
//          Graph() adds one node after the blocks: the root, with edges to the entry and to code of unknown origin.
// Errors   none: `note` says why edges may be missing.
// Threads  thread-safe (pure).
#ifndef AGENT_BINARY_FLOW_CONTROL_FLOW_H_
#define AGENT_BINARY_FLOW_CONTROL_FLOW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "agent/binary/flow/explorer.h"
#include "agent/binary/flow/instruction.h"

namespace perfd::agent {

// Successors of each node; edges may be repeated.
struct FlowGraph {
  std::vector<std::vector<uint32_t>> successors;
  uint32_t root = 0;

  uint32_t size() const { return static_cast<uint32_t>(successors.size()); }
};

struct Block {
  uint64_t low = 0;
  uint64_t high = 0;  // exclusive
  uint32_t first_instruction = 0;
  uint32_t instruction_count = 0;
  std::vector<uint32_t> successors;  // inside the function
};

struct ControlFlow {
  std::vector<Instruction> instructions;
  std::vector<Block> blocks;
  std::vector<uint32_t> roots;  // the entry first
  std::string note;
};

ControlFlow BuildControlFlow(const FunctionCode& code);
FlowGraph Graph(const ControlFlow& flow);

}  // namespace perfd::agent

#endif  // AGENT_BINARY_FLOW_CONTROL_FLOW_H_
