#include "agent/variant/rewrite.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/variant/decode.h"
#include "agent/variant/flow/edges.h"
#include "agent/variant/flow/excluded_path.h"
#include "agent/variant/flow/leaf_calls.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// Source: Intel SDM vol. 2, NOP, table 4-12.
constexpr std::array<std::array<uint8_t, 9>, 9> kNops = {{{0x90},
                                                          {0x66, 0x90},
                                                          {0x0f, 0x1f, 0x00},
                                                          {0x0f, 0x1f, 0x40},
                                                          {0x0f, 0x1f, 0x44},
                                                          {0x66, 0x0f, 0x1f, 0x44},
                                                          {0x0f, 0x1f, 0x80},
                                                          {0x0f, 0x1f, 0x84},
                                                          {0x66, 0x0f, 0x1f, 0x84}}};

// Segment overrides mean nothing to an instruction without memory operand (Intel SDM vol. 2, 2.1.1). As many as compilers use
// to align branches.
constexpr uint8_t kNoMeaning = 0x3e;
constexpr size_t kMostPrefixes = 5;
constexpr size_t kMostBytes = 15;  // of an instruction

// Makes one instruction up to `bytes` longer; how many it could not take.
size_t Stretch(const LoopInstruction& i, size_t bytes, Encoded* code) {
  if (i.memory || i.flow != LoopFlow::kPlain || code->displacement_at != 0) return bytes;
  const size_t taken = std::min({bytes, kMostPrefixes, kMostBytes - code->bytes.size()});
  code->bytes.insert(code->bytes.begin(), taken, kNoMeaning);
  return bytes - taken;
}

// `lea target(%rip), %reg` of what no copy can reach: `movabs $target, %reg`. Source: Intel SDM vol. 2, MOV (REX.W + B8+rd io).
Encoded NumberOf(const LoopInstruction& lea) {
  const auto reg = static_cast<uint8_t>(lea.destination);
  Encoded code;
  code.bytes = {static_cast<uint8_t>(0x48 | reg >> 3), static_cast<uint8_t>(0xb8 | (reg & 7))};
  for (int n = 0; n < 8; ++n)
    code.bytes.push_back(static_cast<uint8_t>(lea.memory->target >> (8 * n)));
  return code;
}

bool SameBytes(const LoopInstruction& old, const std::vector<Encoded>& codes) {
  return codes.size() == 1 && std::equal(codes[0].bytes.begin(), codes[0].bytes.end(),
                                         old.code().begin(), old.code().end());
}

class Assembler {
 public:
  Assembler(const LoopCode& loop, const Draft& draft, const CopyTarget& target)
      : loop_(loop), draft_(draft), place_(target), starts_(loop.instructions.size() + 1) {}

  absl::StatusOr<CodeCopy> Run() {
    for (uint32_t i = 0; i < loop_.instructions.size(); ++i) AddSlot(i);
    const size_t body_end = pieces_.size();
    AddPreparation();
    starts_.back() = pieces_.size();
    pieces_.insert(pieces_.end(), draft_.excluded_path.begin(), draft_.excluded_path.end());
    for (Piece& p : pieces_)
      if (p.jump != Jump::kNone && !p.outside) p.to = starts_[p.to];
    const Anchor anchor = {place_.address, starts_[loop_.entry], loop_.header % 64};
    const size_t entry = draft_.preparation.empty() ? starts_[loop_.entry] : body_end;
    ASSIGN_OR_RETURN(Layout layout, LayOut(pieces_, body_end, anchor));
    return Finish(layout, entry);
  }

 private:
  CodeCopy Finish(const Layout& layout, size_t entry) const {
    CodeCopy copy;
    copy.address = layout.address;
    copy.entry = layout.address + layout.offsets[entry];
    copy.bytes = layout.bytes;
    for (size_t i = 0; i < pieces_.size(); ++i)
      if (pieces_[i].original != 0)
        copy.address_map.push_back({pieces_[i].original, layout.address + layout.offsets[i]});
    // A way out of a leaf stands for no address of the original: nobody is ever sent there.
    for (const Layout::Pad& pad : layout.pads)
      if (!LeavesLeaf(loop_, pad.leads_to))
        copy.address_map.push_back({pad.leads_to, layout.address + pad.offset});
    std::sort(copy.address_map.begin(), copy.address_map.end(),
              [](const AddressPair& a, const AddressPair& b) { return a.copy < b.copy; });
    return copy;
  }

  // Until the end, `to` of a jump inside the copy is the index of an instruction.
  void SetTarget(uint64_t target, Piece* piece) const {
    const int at = InstructionAt(loop_, target);
    if (at < 0 && !draft_.excluded_path.empty() && IsCut(target)) {
      piece->to = starts_.size() - 1;
      return;
    }
    piece->outside = at < 0;
    piece->leads_to = at < 0 ? target : 0;
    piece->to = at >= 0 ? static_cast<uint64_t>(at)
                        : (place_.exits == Exits::kStub ? place_.exit_stub : target);
  }

  bool IsCut(uint64_t address) const { return InCut(loop_, address) || LeavesLeaf(loop_, address); }

  Encoded PlainCodeOf(const LoopInstruction& i) const {
    const bool number = i.mnemonic == "lea" && i.memory && i.memory->base == kInstructionPointer;
    return number && InFarLeaf(loop_, i.address) ? NumberOf(i) : CodeOf(i);
  }

  void AddJump(uint64_t target, uint64_t original) {
    Piece piece;
    piece.jump = Jump::kAlways;
    piece.original = original;
    SetTarget(target, &piece);
    pieces_.push_back(std::move(piece));
  }

  void AddBranch(const LoopInstruction& i) {
    Piece piece;
    piece.jump = i.flow == LoopFlow::kJump ? Jump::kAlways : Jump::kConditional;
    // The opcode's last byte stands before the displacement and carries the condition in its low half.
    piece.condition = i.bytes[i.branch_at - 1u] & 0x0f;
    piece.is_short = i.length - i.branch_at == 1;
    piece.original = i.address;
    SetTarget(i.target, &piece);
    pieces_.push_back(std::move(piece));
  }

  void AddPieces(const std::vector<Piece>& pieces, uint64_t* original) {
    for (Piece piece : pieces) {
      piece.original = std::exchange(*original, 0);
      pieces_.push_back(std::move(piece));
    }
  }

  void AddCodes(const std::vector<Encoded>& codes, uint64_t* original) {
    for (const Encoded& code : codes) {
      Piece piece;
      piece.code = code;
      piece.original = std::exchange(*original, 0);
      pieces_.push_back(std::move(piece));
    }
  }

  void AddSlot(uint32_t at) {
    const LoopInstruction& i = loop_.instructions[at];
    const Slot& slot = draft_.slots[at];
    starts_[at] = pieces_.size();
    uint64_t original = i.address;
    AddPieces(slot.before, &original);
    if (slot.replacement) {
      AddCodes(slot.replacement->codes, &original);
    } else if (i.flow == LoopFlow::kBranch || i.flow == LoopFlow::kJump) {
      AddBranch(i);
      pieces_.back().original = std::exchange(original, 0);
    } else {
      AddCodes({PlainCodeOf(i)}, &original);
    }
    AddPieces(slot.after, &original);
    const bool falls = i.flow != LoopFlow::kJump && i.flow != LoopFlow::kEnd;
    const bool last = at + 1 == loop_.instructions.size();
    if (falls && (last || loop_.instructions[at + 1].address != i.end())) AddJump(i.end(), i.end());
  }

  void AddPreparation() {
    if (draft_.preparation.empty()) return;
    pieces_.insert(pieces_.end(), draft_.preparation.begin(), draft_.preparation.end());
    AddJump(loop_.header, 0);
  }

  const LoopCode& loop_;
  const Draft& draft_;
  const CopyTarget& place_;
  std::vector<Piece> pieces_;
  std::vector<size_t> starts_;  // of each instruction; the last: of Draft::detour
};

}  // namespace

void AppendNops(size_t bytes, std::vector<uint8_t>* out) {
  while (bytes > 0) {
    const size_t n = std::min<size_t>(bytes, kNops.size());
    out->insert(out->end(), kNops[n - 1].begin(), kNops[n - 1].begin() + static_cast<int64_t>(n));
    bytes -= n;
  }
}

absl::StatusOr<Replacement> Replace(const LoopInstruction& old, std::vector<Encoded> codes) {
  Replacement r;
  size_t length = 0;
  std::vector<std::string> texts;
  for (const Encoded& code : codes) {
    std::optional<LoopInstruction> i = DecodeLoopInstruction(code.bytes, old.address);
    if (!i || i->length != code.bytes.size())
      return absl::InternalError(absl::StrCat("a replacement of `", old.text, "` does not decode"));
    if (code.displacement_at != 0 && i->memory) i->memory->target = code.target;
    length += code.bytes.size();
    r.text += absl::StrCat(r.text.empty() ? "" : "; ", i->text);
    r.effects.push_back(*std::move(i));
  }
  r.codes = std::move(codes);
  if (SameBytes(old, r.codes)) r.text = old.text;
  const size_t before = old.code().size();
  size_t missing = before - std::min(length, before);
  for (size_t n = 0; n < r.codes.size() && missing > 0; ++n)
    missing = Stretch(r.effects[n], missing, &r.codes[n]);
  if (missing > 0) {
    Encoded filler;
    AppendNops(missing, &filler.bytes);
    r.codes.push_back(std::move(filler));
  }
  return r;
}

Replacement Delete(const LoopInstruction& old) {
  Replacement r;
  r.text = "deleted";
  Encoded filler;
  AppendNops(old.code().size(), &filler.bytes);
  r.codes.push_back(std::move(filler));
  return r;
}

Encoded CodeOf(const LoopInstruction& i) {
  Encoded code;
  code.bytes.assign(i.code().begin(), i.code().end());
  code.displacement_at = i.displacement_at;
  if (i.displacement_at != 0 && i.memory) code.target = i.memory->target;
  return code;
}

Piece PieceOf(std::vector<uint8_t> bytes) {
  Piece piece;
  piece.code.bytes = std::move(bytes);
  return piece;
}

absl::StatusOr<CodeCopy> Assemble(const LoopCode& loop, const Draft& draft,
                                  const CopyTarget& target) {
  return Assembler(loop, draft, target).Run();
}

}  // namespace perfd::agent
