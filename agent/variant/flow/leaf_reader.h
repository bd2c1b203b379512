// agent/variant/flow/leaf_reader.h - the instructions of one small function that a loop calls, also of another module. Pure.
//
// Shape    from its entry on, through the words of procedure linkage tables too, whatever is reached; so are the functions that it calls,
//          to some depth. What no copy can hold (a function with a loop, a large frame, memory beside it that may change) becomes a way
//          out of the copy, into the function's own text.
// Errors   FailedPrecondition: it is no leaf (it never returns without leaving, has a loop), with the reason. `wanted`: what must be
//          read before more can be said.
// Source   System V ABI AMD64, 5.2 (procedure linkage table); docs/adr/0038-loops-that-call.md.
#ifndef AGENT_VARIANT_FLOW_LEAF_READER_H_
#define AGENT_VARIANT_FLOW_LEAF_READER_H_

#include <map>
#include <optional>

#include "absl/status/statusor.h"
#include "agent/variant/loop_code.h"

namespace perfd::agent {

inline constexpr size_t kMostLeafInstructions = 512;

// Of CalledCode, each once, sorted. What cannot be had is to be added without bytes, or with no value.
struct WantedCode {
  std::vector<uint64_t> text;
  std::vector<uint64_t> slots;
  std::vector<CodeRange> constants;

  bool empty() const { return text.empty() && slots.empty() && constants.empty(); }
};

// Returns lead to `back`, ways out to LeafExit::exit, counted from `first_exit` on.
struct Leaf {
  std::map<uint64_t, LoopInstruction> code;
  Leaves parts;                    // but for refusals
  std::vector<std::string> texts;  // of what it is left at, for people
};

struct LeafCall {
  uint64_t entry = 0;
  std::vector<ReturnAddress> returns;  // that of the call itself is the last
  size_t first_exit = 0;
  const ImportSlot* through = nullptr;  // what the call itself reads; null: it names the entry
  const ImportSlot* module = nullptr;   // that led to the code's module; null: it is the loop's
};

// The parts of one more leaf.
void Append(const Leaves& parts, Leaves* to);

absl::StatusOr<Leaf> ReadLeaf(const LoopBytes& bytes, const LeafCall& call, WantedCode* wanted);

// An instruction that only moves control.
void MakeJump(uint64_t target, LoopInstruction* i);
// Where a call leads, directly or through a word; none: not known.
std::optional<uint64_t> EntryOf(const LoopBytes& bytes, const LoopInstruction& call);
// The word that a jump or a call reads its target from.
std::optional<uint64_t> SlotOf(const LoopInstruction& i);
const ImportSlot* SlotAt(const LoopBytes& bytes, uint64_t address);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_FLOW_LEAF_READER_H_
