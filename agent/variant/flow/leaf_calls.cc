#include "agent/variant/flow/leaf_calls.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "agent/variant/decode.h"
#include "agent/variant/flow/body.h"
#include "agent/variant/flow/edges.h"
#include "agent/variant/flow/excluded_path.h"
#include "agent/variant/flow/leaf_frame.h"

namespace perfd::agent {
namespace {

bool IsCall(const LoopInstruction& i) {
  return i.flow == LoopFlow::kCall && i.refusal.empty();
}

// Nothing of it is in the loop already, or in the function around.
bool StandsApart(const LoopCode& loop, const std::vector<CodeRange>& ranges) {
  const auto meets = [&ranges](const CodeRange& other) {
    return std::any_of(ranges.begin(), ranges.end(), [&other](const CodeRange& range) {
      return range.low < other.high && other.low < range.high;
    });
  };
  return std::none_of(loop.function.begin(), loop.function.end(), meets) &&
         std::none_of(loop.leaves.ranges.begin(), loop.leaves.ranges.end(), meets);
}

bool CalledOnce(const LoopBytes& bytes, const LoopCode& loop, uint64_t entry) {
  return std::count_if(loop.instructions.begin(), loop.instructions.end(),
                       [&](const LoopInstruction& i) {
                         return IsCall(i) && EntryOf(bytes, i) == entry;
                       }) == 1;
}

LeafCall CallAt(const LoopBytes& bytes, const LoopInstruction& i) {
  const std::optional<uint64_t> slot = i.target == 0 ? SlotOf(i) : std::nullopt;
  const ImportSlot* through = slot ? SlotAt(bytes, *slot) : nullptr;
  const ReturnAddress back{kReturnAddressBytes, i.end()};
  return {EntryOf(bytes, i).value_or(0), {back}, 0, through, through};
}

absl::Status TakeIn(const LoopBytes& bytes, uint64_t address, LoopCode* loop) {
  const auto at = static_cast<size_t>(InstructionAt(*loop, address));
  LeafCall call = CallAt(bytes, loop->instructions[at]);
  call.first_exit = loop->leaves.exits.size();
  if (call.entry == 0) return absl::FailedPreconditionError("where it leads is not known");
  if (InstructionAt(*loop, call.returns[0].back) < 0 || !CalledOnce(bytes, *loop, call.entry))
    return absl::FailedPreconditionError("it is called at several places");
  WantedCode wanted;
  absl::StatusOr<Leaf> leaf = ReadLeaf(bytes, call, &wanted);
  if (!leaf.ok()) return leaf.status();
  if (!StandsApart(*loop, leaf->parts.ranges))
    return absl::FailedPreconditionError("it shares code with the loop's function");
  if (loop->instructions.size() + leaf->code.size() > static_cast<size_t>(kMaxLoopInstructions))
    return absl::FailedPreconditionError("it is long");
  MakeJump(call.entry, &loop->instructions[at]);
  for (auto& [where, i] : leaf->code) loop->instructions.push_back(i);
  std::sort(
      loop->instructions.begin(), loop->instructions.end(),
      [](const LoopInstruction& a, const LoopInstruction& b) { return a.address < b.address; });
  Append(leaf->parts, &loop->leaves);
  for (const std::string& text : leaf->texts) NameExcludedPath(text, loop);
  return absl::OkStatus();
}

bool Holds(const std::vector<CodeRange>& ranges, uint64_t address) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [address](const CodeRange& range) { return range.Contains(address); });
}

template <typename T>
void Unique(std::vector<T>* values) {
  std::sort(values->begin(), values->end());
  values->erase(std::unique(values->begin(), values->end()), values->end());
}

void AddWanted(const LoopBytes& bytes, const LoopInstruction& i, WantedCode* wanted) {
  const std::optional<uint64_t> slot = i.target == 0 ? SlotOf(i) : std::nullopt;
  if (slot && SlotAt(bytes, *slot) == nullptr) wanted->slots.push_back(*slot);
  const LeafCall call = CallAt(bytes, i);
  if (call.entry != 0) (void)ReadLeaf(bytes, call, wanted);
}

}  // namespace

bool TakeInLeaves(const LoopBytes& bytes, LoopCode* loop) {
  std::vector<uint64_t> calls;
  for (const LoopInstruction& i : loop->instructions) {
    // Five bytes, or six through a word: the jump that stands for it has no more.
    if (IsCall(i) && (i.branch_at == 1 || SlotOf(i))) calls.push_back(i.address);
  }
  bool any = false;
  for (const uint64_t call : calls) {
    const absl::Status taken = TakeIn(bytes, call, loop);
    any = any || taken.ok();
    if (!taken.ok()) loop->leaves.refusals.emplace_back(call, taken.message());
  }
  return any;
}

WantedCode WantedBy(const LoopBytes& bytes) {
  constexpr int kMostCalls =
      64;  // each may be read many times; a loop with more is hardly one to copy
  WantedCode wanted;
  int calls = 0;
  for (const CodeRange& range : bytes.body) {
    for (uint64_t at = range.low; at < range.high;) {
      const std::optional<FlowStep> step = DecodeFlow(BytesAt(bytes, at), at);
      if (!step || step->length == 0) break;
      if (step->flow == LoopFlow::kCall && calls++ < kMostCalls)
        AddWanted(bytes, *DecodeLoopInstruction(BytesAt(bytes, at), at, bytes.bias), &wanted);
      at += step->length;
    }
  }
  Unique(&wanted.text);
  Unique(&wanted.slots);
  Unique(&wanted.constants);
  return wanted;
}

bool InLeaf(const LoopCode& loop, uint64_t address) {
  return Holds(loop.leaves.ranges, address);
}

bool InFarLeaf(const LoopCode& loop, uint64_t address) {
  return Holds(loop.leaves.far, address);
}

bool ReadsConstant(const LoopCode& loop, const LoopInstruction& i) {
  return i.Accesses() && i.memory->base == kInstructionPointer && InFarLeaf(loop, i.address);
}

bool LeavesLeaf(const LoopCode& loop, uint64_t target) {
  return std::any_of(loop.leaves.exits.begin(), loop.leaves.exits.end(),
                     [target](const LeafExit& exit) { return exit.exit == target; });
}

}  // namespace perfd::agent
