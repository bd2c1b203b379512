// agent/variant/layout.h - pieces of code to bytes at an address: branches, rip-relative operands, exits, alignment.
//
// Shape    a branch that was short stays short: when it leaves the copy it goes to a pad (jmp rel32) behind the body. One
//          that cannot reach becomes near, and what follows moves.
// Errors   OutOfRange: an operand or exit is more than 2 GiB away.
// Source   Intel SDM vol. 2, Jcc (70+cc rel8, 0F 80+cc rel32), JMP (EB rel8, E9 rel32).
#ifndef AGENT_VARIANT_LAYOUT_H_
#define AGENT_VARIANT_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace perfd::agent {

// One instruction. A rip-relative displacement at `displacement_at` is made to reach `target`.
struct Encoded {
  std::vector<uint8_t> bytes;
  uint8_t displacement_at = 0;  // 0: none
  uint64_t target = 0;
};

enum class Jump : uint8_t { kNone, kAlways, kConditional };

struct Piece {
  Encoded code;
  Jump jump = Jump::kNone;  // the bytes are made by the layout
  uint8_t condition = 0;    // of kConditional
  bool is_short = false;    // wanted
  bool outside = false;     // goes to the address `to`, else to the piece `to`
  uint64_t to = 0;
  uint64_t original = 0;  // original address that this piece stands for; 0: none
  uint64_t leads_to = 0;  // outside: the original address it stands for
};

struct Layout {
  uint64_t address = 0;
  std::vector<uint8_t> bytes;
  std::vector<uint64_t> offsets;  // of each piece
  struct Pad {
    uint64_t offset = 0;
    uint64_t leads_to = 0;
  };
  std::vector<Pad> pads;
};

// Placed at the first address >= `lowest` that gives piece `anchor` the offset `residue` within 64 bytes.
struct Anchor {
  uint64_t lowest = 0;
  size_t piece = 0;
  uint64_t residue = 0;
};

// Pads come after piece `body_end` - 1; pieces from there on follow the pads.
absl::StatusOr<Layout> LayOut(std::vector<Piece> pieces, size_t body_end, const Anchor& anchor);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_LAYOUT_H_
