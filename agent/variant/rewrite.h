// agent/variant/rewrite.h - what stands in a copy for each instruction of a loop, before it has addresses.
//
// Shape    a Draft has one Slot per original instruction: code before it, the instruction or its replacement, code after.
// Source   deletion by same-length NOP: Bendifallah 2015, 6.2 (ANMB); NOP forms: Intel SDM vol. 2, NOP, table 4-12.
#ifndef AGENT_VARIANT_REWRITE_H_
#define AGENT_VARIANT_REWRITE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/variant/copy.h"
#include "agent/variant/instruction.h"
#include "agent/variant/layout.h"

namespace perfd::agent {

struct Replacement {
  std::vector<Encoded> codes;            // instructions in a row
  std::vector<LoopInstruction> effects;  // the same, decoded again; NOPs left out
  std::string text;
};

struct Slot {
  std::vector<Piece> before;
  std::optional<Replacement> replacement;
  std::vector<Piece> after;
};

struct Draft {
  std::vector<Slot> slots;
  std::vector<Piece> preparation;  // run once, before the header; falls into it
  // On the way out into a path that was cut out of the loop; ends in a jump outside. Empty: these exits are like any other.
  std::vector<Piece> excluded_path;
};

// One multi-byte NOP of 1..9 bytes, or several.
void AppendNops(size_t bytes, std::vector<uint8_t>* out);

// Of the length of `old`; longer when the codes are longer. Filled up with prefixes that mean nothing, as far as these go: a NOP
// takes a place in the pipeline that the original did not take, and loops in L1 are often bound by just these places.
absl::StatusOr<Replacement> Replace(const LoopInstruction& old, std::vector<Encoded> codes);
Replacement Delete(const LoopInstruction& old);

Encoded CodeOf(const LoopInstruction& instruction);
Piece PieceOf(std::vector<uint8_t> bytes);

// The draft as bytes: everything of CodeCopy that depends on addresses.
absl::StatusOr<CodeCopy> Assemble(const LoopCode& loop, const Draft& draft,
                                  const CopyTarget& target);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_REWRITE_H_
