#include "agent/binary/flow/control_flow.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace perfd::agent {
namespace {

class BlockBuilder {
 public:
  explicit BlockBuilder(const FunctionCode& code)
      : found_(Explore(code)), leader_(found_.steps.size(), false) {
    for (size_t i = 0; i < found_.tables.size(); ++i) table_of_[found_.tables[i].step] = i;
  }

  ControlFlow Build() {
    MarkLeaders();
    MakeBlocks();
    for (uint32_t block = 0; block < flow_.blocks.size(); ++block) Connect(block);
    for (const uint32_t root : found_.roots) flow_.roots.push_back(block_of_[root]);
    flow_.note = NoteText();
    return std::move(flow_);
  }

 private:
  uint32_t StepAt(uint64_t address) const {
    const std::optional<size_t> position = found_.map.PositionOf(address);
    return position ? found_.step_at[*position] : kNoStep;
  }

  void MarkLeader(uint64_t address) {
    if (const uint32_t step = StepAt(address); step != kNoStep) leader_[step] = true;
  }

  bool GoesOn(const Step& step) const { return FallsThrough(step.instruction) && !step.ends; }

  // Leaders: roots, targets, the first bytes of parts (no block lies in two), what follows a branch or a call with a landing pad, and what two
  // instructions fall into (overlapping code, such as a jump past a lock prefix).
  void MarkLeaders() {
    std::vector<uint8_t> arrivals(found_.steps.size(), 0);
    for (const uint32_t root : found_.roots) leader_[root] = true;
    for (const uint64_t low : found_.map.Starts()) MarkLeader(low);
    for (const TableJump& jump : found_.tables)
      for (const uint64_t target : jump.targets) MarkLeader(target);
    for (const Step& step : found_.steps) {
      const Instruction& at = step.instruction;
      if (HasTargetInCode(at)) MarkLeader(at.target);
      if (step.landing_pad != 0) MarkLeader(step.landing_pad);
      if (at.flow == Flow::kConditional || step.landing_pad != 0) MarkLeader(at.end());
      const uint32_t next = GoesOn(step) ? StepAt(at.end()) : kNoStep;
      if (next != kNoStep && ++arrivals[next] > 1) leader_[next] = true;
    }
  }

  void MakeBlocks() {
    block_of_.assign(found_.steps.size(), kNoStep);
    for (const uint32_t step : found_.step_at) {
      if (step == kNoStep || !IsStart(step)) continue;
      Block block;
      block.low = found_.steps[step].instruction.address;
      block.first_instruction = static_cast<uint32_t>(flow_.instructions.size());
      last_step_.push_back(Fill(block, step));
      flow_.blocks.push_back(std::move(block));
    }
  }

  // A leader, or code whose only way in was cut (phases).
  bool IsStart(uint32_t step) const {
    return block_of_[step] == kNoStep && (leader_[step] || found_.steps[step].previous == kNoStep);
  }

  uint32_t Fill(Block& block, uint32_t step) {
    const uint32_t index = static_cast<uint32_t>(flow_.blocks.size());
    while (true) {
      const Step& at = found_.steps[step];
      block_of_[step] = index;
      flow_.instructions.push_back(at.instruction);
      ++block.instruction_count;
      block.high = at.instruction.end();
      const uint32_t next = GoesOn(at) ? StepAt(block.high) : kNoStep;
      if (next == kNoStep || leader_[next] || block_of_[next] != kNoStep) return step;
      step = next;
    }
  }

  void Connect(uint32_t block) {
    const uint32_t step = last_step_[block];
    const Instruction& last = found_.steps[step].instruction;
    if (GoesOn(found_.steps[step])) AddEdge(block, step, last.end());
    if (HasTargetInCode(last)) AddEdge(block, step, last.target);
    if (found_.steps[step].landing_pad != 0) AddEdge(block, step, found_.steps[step].landing_pad);
    if (last.flow != Flow::kIndirectJump) return;
    const auto table = table_of_.find(step);
    if (table == table_of_.end()) return;
    for (const uint64_t target : found_.tables[table->second].targets) AddEdge(block, step, target);
  }

  // Code of a later phase has an unknown origin: its edges into earlier phases would look like second entries of loops.
  void AddEdge(uint32_t block, uint32_t from, uint64_t target) {
    const uint32_t to = StepAt(target);
    if (to == kNoStep || block_of_[to] == kNoStep) return;
    if (found_.steps[to].phase < found_.steps[from].phase) return;
    flow_.blocks[block].successors.push_back(block_of_[to]);
  }

  std::string NoteText() const {
    std::vector<std::string> notes;
    if (found_.truncated) notes.push_back("function too large: only its beginning was analysed");
    if (!found_.unresolved.empty())
      notes.push_back(absl::StrCat(found_.unresolved.size(), " unresolved indirect jump(s)"));
    if (found_.undecodable > 0)
      notes.push_back(absl::StrCat("undecodable bytes at ", found_.undecodable, " place(s)"));
    return absl::StrJoin(notes, "; ");
  }

  const Exploration found_;
  absl::flat_hash_map<uint32_t, size_t> table_of_;
  std::vector<bool> leader_;
  std::vector<uint32_t> block_of_;   // by step
  std::vector<uint32_t> last_step_;  // by block
  ControlFlow flow_;
};

}  // namespace

ControlFlow BuildControlFlow(const FunctionCode& code) {
  return BlockBuilder(code).Build();
}

FlowGraph Graph(const ControlFlow& flow) {
  FlowGraph graph;
  for (const Block& block : flow.blocks) graph.successors.push_back(block.successors);
  graph.root = static_cast<uint32_t>(flow.blocks.size());
  graph.successors.push_back(flow.roots);
  return graph;
}

}  // namespace perfd::agent
