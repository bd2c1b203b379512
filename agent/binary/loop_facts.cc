#include "agent/binary/loop_facts.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "agent/binary/flow/control_flow.h"
#include "agent/binary/flow/dominators.h"
#include "agent/binary/flow/loop_forest.h"
#include "agent/binary/loop_lines.h"
#include "agent/binary/symbol_name.h"

namespace perfd::agent {
namespace {

// Instruction addresses of the body and of the branches back to the header.
struct Addresses {
  std::vector<uint64_t> body;
  std::vector<uint64_t> latches;
};

Addresses Collect(const ControlFlow& flow, const Loop& loop) {
  Addresses out;
  for (const uint32_t node : loop.nodes) {
    const Block& block = flow.blocks[node];
    for (uint32_t i = 0; i < block.instruction_count; ++i)
      out.body.push_back(flow.instructions[block.first_instruction + i].address);
    const auto& next = block.successors;
    if (std::find(next.begin(), next.end(), loop.header) != next.end())
      out.latches.push_back(out.body.back());
  }
  return out;
}

// Where the loop lies in each part of the function. Blocks are sorted by address, and none lies in two parts.
std::vector<CodeRange> Extents(const FunctionCode& code, const ControlFlow& flow,
                               const Loop& loop) {
  std::vector<CodeRange> extents;
  auto part = code.parts.begin();
  uint64_t end = 0;  // of the part of the last extent
  for (const uint32_t node : loop.nodes) {
    const Block& block = flow.blocks[node];
    if (!extents.empty() && block.low < end) {
      extents.back().high = std::max(extents.back().high, block.high);
      continue;
    }
    while (block.low >= part->high()) ++part;
    end = part->high();
    extents.push_back({block.low, block.high});
  }
  return extents;
}

LoopFacts Describe(const FunctionCode& code, const ControlFlow& flow,
                   const std::vector<Loop>& loops, const Loop& loop) {
  LoopFacts facts;
  facts.header = flow.blocks[loop.header].low;
  if (loop.parent >= 0)
    facts.parent_header = flow.blocks[loops[static_cast<size_t>(loop.parent)].header].low;
  facts.depth = loop.depth;
  facts.innermost = loop.innermost;
  facts.irreducible = loop.irreducible;
  for (const CodeRange& extent : Extents(code, flow, loop)) {
    if (extent.Contains(facts.header)) {
      facts.low = extent.low;
      facts.high = extent.high;
    } else {
      facts.further_parts.push_back(extent);
    }
  }
  facts.block_count = static_cast<int32_t>(loop.nodes.size());
  for (const uint32_t node : loop.nodes)
    facts.instruction_count += static_cast<int32_t>(flow.blocks[node].instruction_count);
  return facts;
}

constexpr uint32_t kNoLoop = UINT32_MAX;

// Blocks are sorted by address; neighbours of one loop become one span. Overlapping code (a jump into the middle of an
// instruction) counts for the block that comes first.
std::vector<LoopSpan> Spans(const ControlFlow& flow, const std::vector<uint32_t>& loop_of) {
  std::vector<LoopSpan> spans;
  for (size_t i = 0; i < flow.blocks.size(); ++i) {
    const Block& block = flow.blocks[i];
    const uint64_t low = spans.empty() ? block.low : std::max(block.low, spans.back().high);
    if (loop_of[i] == kNoLoop || low >= block.high) continue;
    if (!spans.empty() && spans.back().high == low && spans.back().loop == loop_of[i]) {
      spans.back().high = block.high;
    } else {
      spans.push_back({low, block.high, loop_of[i]});
    }
  }
  return spans;
}

// Positions of the loops once sorted by header.
std::vector<uint32_t> SortedPositions(const ControlFlow& flow, const std::vector<Loop>& loops) {
  std::vector<uint32_t> order(loops.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return flow.blocks[loops[a].header].low < flow.blocks[loops[b].header].low;
  });
  std::vector<uint32_t> position(loops.size());
  for (uint32_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  return position;
}

}  // namespace

LoopAnalysis AnalyseLoops(const FunctionCode& code, const FunctionLines& lines) {
  const ControlFlow flow = BuildControlFlow(code);
  const FlowGraph graph = Graph(flow);
  const std::vector<Loop> loops = FindLoops(graph, DominatorTree(graph));
  LoopAnalysis out;
  out.note = flow.note;
  if (loops.size() > kMaxLoopsPerFunction) {
    out.note = "too many loops: none is reported";
    return out;
  }
  const LoopLineFinder finder(lines);
  const std::vector<uint32_t> position = SortedPositions(flow, loops);
  std::vector<uint32_t> loop_of(flow.blocks.size(), kNoLoop);
  out.loops.resize(loops.size());
  for (size_t i = 0; i < loops.size(); ++i) {  // parents first: the innermost is written last
    for (const uint32_t node : loops[i].nodes) loop_of[node] = position[i];
    LoopFacts& facts = out.loops[position[i]];
    facts = Describe(code, flow, loops, loops[i]);
    const Addresses addresses = Collect(flow, loops[i]);
    LoopSource source = finder.Find(addresses.body, addresses.latches);
    facts.source = std::move(source.range);
    facts.inlined_from = ReadableName(source.inlined_from);
  }
  out.spans = Spans(flow, loop_of);
  return out;
}

}  // namespace perfd::agent
