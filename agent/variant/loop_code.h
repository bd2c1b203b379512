// agent/variant/loop_code.h - the machine code of one loop, understood well enough to be copied and changed.
//
// Shape    LoopCode: instructions in address order, their edges, and what each one is for (subsets). Entered only at the
//          header; may have several blocks, exits and loops inside it (docs/adr/0037-outer-loops.md); paths that cannot be copied
//          are cut (flow/excluded_path.h). A plain value.
// Units    run-time addresses.
// Errors   FailedPrecondition names instruction and reason: indirect jump, GS operand, stack pointer changed, second entry,
//          system call, an inner loop with several entries, no exit. InvalidArgument: ranges outside the bytes, parts that overlap.
// Source   design, section 7; Bendifallah 2015, 3.1-3.4 (subsets), 4.1 (grouping).
#ifndef AGENT_VARIANT_LOOP_CODE_H_
#define AGENT_VARIANT_LOOP_CODE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/variant/instruction.h"
#include "core/base/address.h"
#include "core/model/code.h"

namespace perfd::agent {

// Text of one part of a function.
struct CodeText {
  uint64_t address = 0;  // run-time address of bytes[0]
  std::vector<uint8_t> bytes;

  uint64_t end() const { return address + bytes.size(); }
};

// A word that the dynamic linker has filled with the address of a function, and the module that this lies in.
struct ImportSlot {
  uint64_t address = 0;
  uint64_t value = 0;  // 0: nothing that may be taken in
  LoadBias bias{};     // of that module, for people
  std::string module;
};

// What operands near a called function read; no bytes: the program may change them.
struct Constant {
  CodeRange range;
  std::vector<uint8_t> bytes;
};

// Code that the loop calls, as far as it is read (flow/leaf_reader.h says what is missing).
struct CalledCode {
  std::vector<CodeText> text;
  std::vector<ImportSlot> slots;
  std::vector<Constant> constants;
};

struct LoopBytes {
  std::vector<CodeText> function;  // all its parts, sorted and disjoint
  LoadBias bias{};                 // people are told ELF addresses
  uint64_t header = 0;
  std::vector<CodeRange>
      body;  // whole blocks of the loop: spans of core/model/code.h plus the load bias
  CalledCode called = {};
};

// Whether what a load reads may have been stored in the loop where code alone does not tell: it is taken for possible, or for
// excluded as far as a trace can show that (LoopCode::taken_apart).
enum class Aliasing : uint8_t { kPossible, kExcluded };

// Two accesses, by the addresses of their instructions.
struct AccessPair {
  uint64_t store = 0;
  uint64_t load = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the operator for one of pointers
  auto operator<=>(const AccessPair&) const = default;
};

// Of a copy: what it rests on, and what it takes away.
struct AccessPairs {
  std::vector<AccessPair> taken_apart;  // it is wrong where one of these touches the same bytes
  std::vector<AccessPair> chains_cut;   // MemoryChainsCut of what it changes (roles.h)
};

inline constexpr int kMaxLoopInstructions = 2048;
inline constexpr int kMaxInnerLoops = 32;  // each is looked at for every variant
inline constexpr int kJumpBytes = 5;       // at the header: E9 rel32

// What an instruction is for in its loop.
struct Role {
  bool control = false;  // decides a branch: in its slice through registers, flags and memory
  bool address = false;  // feeds the address of a memory operand
  bool reduction =
      false;  // carries a value round the loop, or one inside it, through accumulating operations only
  int32_t group = -1;   // static group of its memory operand; -1: no memory operand
  uint64_t offset = 0;  // of the operand within its group, modulo 2^64

  // The black list: no variant touches these.
  bool fixed() const { return control || address; }
};

// Paths of a loop that copies leave through exits (flow/excluded_path.h).
struct ExcludedPaths {
  std::vector<CodeRange> ranges;
  std::vector<std::string> texts;  // the first few instructions for which they were left out
};

// What a call would have pushed, so many bytes below the loop's stack pointer.
struct ReturnAddress {
  int64_t depth = 0;
  uint64_t back = 0;  // behind the call
};

// Where a leaf is left for its own text: at what no copy can hold. `exit` stands for it in targets of branches; it is no address
// before the leaves have a pool (flow/leaf_pool.h), and then that of the code which goes on at `to` with the stack that is due there.
struct LeafExit {
  uint64_t exit = 0;
  uint64_t to = 0;
  int64_t depth = 0;                   // of the stack pointer there, below the loop's
  std::vector<ReturnAddress> returns;  // outermost first
};

// Called functions whose instructions are in the loop (flow/leaf_calls.h).
struct Leaves {
  std::vector<CodeRange> ranges;
  std::vector<CodeRange> far;       // those of them that copies cannot reach: of other modules
  std::vector<ImportSlot> slots;    // that must still say what they said
  std::vector<Constant> constants;  // that far ones read beside them
  std::vector<LeafExit> exits;
  std::vector<uint64_t>
      without_flags;  // behind calls: there the copy has other flags than the loop
  std::vector<std::pair<uint64_t, std::string>> refusals;  // by call, why it is none
};

// A loop inside the loop: its code is the loop's own, its passes are not.
struct InnerLoop {
  uint32_t header = 0;   // index of an instruction
  std::vector<bool> in;  // by instruction: header and body, with the loops in it
};

struct Liveness {
  // Registers and flags read before they are written, and all that an exit may need.
  RegisterSet at_entry = 0;
  // By instruction, what is read after it before a batch comes back to the loop (batch.h); empty: nothing.
  std::vector<RegisterSet> beyond = {};
};

struct LoopCode {
  uint64_t header = 0;
  LoadBias bias{};
  uint32_t entry = 0;                         // index of the header instruction
  std::vector<LoopInstruction> instructions;  // sorted by address
  std::vector<Role> roles;                    // one per instruction
  std::vector<std::vector<uint32_t>> next;    // edges inside the loop
  std::vector<std::vector<uint64_t>> exits;   // addresses outside that an instruction may go to
  std::vector<InnerLoop> inner;               // loops inside it, outer ones first (flow/nest.h)
  std::vector<uint32_t> calls;                // instructions that call what is not in the copies
  int32_t groups = 0;
  Liveness live;
  std::vector<CodeRange> body;  // sorted, merged
  Leaves leaves;
  ExcludedPaths excluded;
  std::vector<CodeRange> function;  // all parts, sorted: they were searched for other entries
  // Aliasing::kExcluded: accesses that never touch the same bytes, or the roles are wrong; sorted. None: kPossible.
  std::optional<std::vector<AccessPair>> taken_apart;
  // Branches outside the function that lead under the jump (flow/far_branches.h); none: nobody has looked.
  std::optional<std::vector<uint64_t>> far_branches;
};

inline Aliasing AliasingOf(const LoopCode& loop) {
  return loop.taken_apart.has_value() ? Aliasing::kExcluded : Aliasing::kPossible;
}

absl::StatusOr<LoopCode> DecodeLoop(const LoopBytes& loop);
// Whether some variant may change more of the first.
bool FreesMore(const LoopCode& apart, const LoopCode& loop);
// The same loop with roles that rest on accesses being apart. None: that would free no instruction for any variant.
std::optional<LoopCode> TakeApart(const LoopCode& loop);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_LOOP_CODE_H_
