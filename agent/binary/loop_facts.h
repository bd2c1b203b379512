// agent/binary/loop_facts.h - from the code of a function to the loops that are reported.
//
// Shape    AnalyseLoops(code, lines) -> loops sorted by header, the code of each, and a note why some may be missing.
// Limits   kMaxLoopsPerFunction; a function with more is reported without loops.
// Threads  thread-safe (pure).
#ifndef AGENT_BINARY_LOOP_FACTS_H_
#define AGENT_BINARY_LOOP_FACTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "agent/binary/flow/explorer.h"
#include "agent/binary/function_lines.h"
#include "core/model/code.h"

namespace perfd::agent {

inline constexpr size_t kMaxLoopsPerFunction = 65536;

struct LoopAnalysis {
  std::vector<LoopFacts> loops;
  std::vector<LoopSpan> spans;  // sorted, disjoint
  std::string note;
};

LoopAnalysis AnalyseLoops(const FunctionCode& code, const FunctionLines& lines);

}  // namespace perfd::agent

#endif  // AGENT_BINARY_LOOP_FACTS_H_
