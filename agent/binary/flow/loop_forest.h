// agent/binary/flow/loop_forest.h - the loops of a function and how they nest.
//
// Shape    FindLoops(graph, dominators) -> loops, parents before children.
//          A loop is a strongly connected part of the graph; its inner loops are those of the part without the header.
//          Where the header dominates the part it is exactly the natural loop of all back edges to that header;
//          otherwise the part has several entries, is marked irreducible, and the entry first in reverse postorder
//          stands for it.
// Limits   kMaxLoopDepth; deeper nests are not split further.
// Threads  thread-safe (pure).
// Source   Aho, Lam, Sethi, Ullman, "Compilers", 2nd ed., 9.6.6 (natural loops); Steensgaard, "Sequentializing Program
//          Dependence Graphs for Irreducible Programs", 1993 (nesting by repeated components); Tarjan, 1972.
#ifndef AGENT_BINARY_FLOW_LOOP_FOREST_H_
#define AGENT_BINARY_FLOW_LOOP_FOREST_H_

#include <cstdint>
#include <vector>

#include "agent/binary/flow/control_flow.h"
#include "agent/binary/flow/dominators.h"

namespace perfd::agent {

inline constexpr int32_t kMaxLoopDepth = 64;

struct Loop {
  uint32_t header = 0;
  std::vector<uint32_t> nodes;  // sorted, header and inner loops included
  int32_t parent = -1;          // index; -1: outermost
  int32_t depth = 1;
  bool innermost = true;
  bool irreducible = false;
};

std::vector<Loop> FindLoops(const FlowGraph& graph, const DominatorTree& dominators);

}  // namespace perfd::agent

#endif  // AGENT_BINARY_FLOW_LOOP_FOREST_H_
