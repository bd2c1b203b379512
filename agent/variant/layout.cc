#include "agent/variant/layout.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kPadBytes = 5;
constexpr uint64_t kCacheLine = 64;

void Encode32(uint64_t value, uint8_t* at) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<uint8_t>(value >> (8 * i));
}

template <typename T>
bool Fits(int64_t distance) {
  return distance >= std::numeric_limits<T>::min() && distance <= std::numeric_limits<T>::max();
}

class Sheet {
 public:
  Sheet(std::vector<Piece> pieces, size_t body_end)
      : pieces_(std::move(pieces)), body_end_(body_end) {}

  // Sizes, pads and offsets, until every short branch reaches.
  void Settle() {
    bool again = true;
    while (again) {
      FindPads();
      Place();
      again = Widen();
    }
  }

  absl::StatusOr<Layout> Emit(const Anchor& anchor) const {
    Layout layout;
    layout.offsets = offsets_;
    layout.pads = pads_;
    const uint64_t want = (anchor.residue - offsets_[anchor.piece]) % kCacheLine;
    layout.address = anchor.lowest + (want - anchor.lowest) % kCacheLine;
    if (layout.address < anchor.lowest || layout.address + size_ < layout.address)
      return absl::OutOfRangeError("the copy would wrap round the end of memory");
    layout.bytes.assign(size_, 0xcc);
    for (size_t i = 0; i < pieces_.size(); ++i) RETURN_IF_ERROR(EmitPiece(i, &layout));
    for (size_t i = 0; i < pads_.size(); ++i)
      RETURN_IF_ERROR(EmitNear({0xe9}, pads_[i].offset, pad_targets_[i], &layout));
    return layout;
  }

 private:
  bool NeedsPad(const Piece& p) const {
    return p.jump == Jump::kConditional && p.outside && p.is_short;
  }

  uint64_t Size(const Piece& p) const {
    if (p.jump == Jump::kNone) return p.code.bytes.size();
    if (p.jump == Jump::kAlways) return p.is_short && !p.outside ? 2 : 5;
    return p.is_short ? 2 : 6;
  }

  void FindPads() {
    pads_.clear();
    pad_targets_.clear();
    for (const Piece& p : pieces_) {
      if (!NeedsPad(p) || PadOf(p) != pads_.size()) continue;
      pads_.push_back({0, p.leads_to});
      pad_targets_.push_back(p.to);
    }
  }

  size_t PadOf(const Piece& p) const {
    size_t i = 0;
    while (i < pads_.size() && (pads_[i].leads_to != p.leads_to || pad_targets_[i] != p.to)) ++i;
    return i;
  }

  void Place() {
    offsets_.assign(pieces_.size(), 0);
    uint64_t at = 0;
    for (size_t i = 0; i <= pieces_.size(); ++i) {
      if (i == body_end_) {
        for (Layout::Pad& pad : pads_) {
          pad.offset = at;
          at += kPadBytes;
        }
      }
      if (i == pieces_.size()) break;
      offsets_[i] = at;
      at += Size(pieces_[i]);
    }
    size_ = at;
  }

  uint64_t ShortTarget(const Piece& p) const {
    return p.outside ? pads_[PadOf(p)].offset : offsets_[p.to];
  }

  bool Widen() {
    bool widened = false;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      Piece& p = pieces_[i];
      if (p.jump == Jump::kNone || !p.is_short || Size(p) != 2) continue;
      const auto distance = static_cast<int64_t>(ShortTarget(p) - (offsets_[i] + 2));
      if (Fits<int8_t>(distance)) continue;
      p.is_short = false;
      widened = true;
    }
    return widened;
  }

  // `target`: an address.
  absl::Status EmitNear(std::vector<uint8_t> opcode, uint64_t offset, uint64_t target,
                        Layout* layout) const {
    const uint64_t end = layout->address + offset + opcode.size() + 4;
    const auto distance = static_cast<int64_t>(target - end);
    if (!Fits<int32_t>(distance)) {
      return absl::OutOfRangeError(absl::StrCat("0x", absl::Hex(target),
                                                " is more than 2 GiB from a copy at 0x",
                                                absl::Hex(layout->address)));
    }
    std::copy(opcode.begin(), opcode.end(), layout->bytes.begin() + static_cast<int64_t>(offset));
    Encode32(static_cast<uint64_t>(distance), &layout->bytes[offset + opcode.size()]);
    return absl::OkStatus();
  }

  absl::Status EmitJump(size_t i, Layout* layout) const {
    const Piece& p = pieces_[i];
    const bool always = p.jump == Jump::kAlways;
    if (Size(p) == 2) {
      layout->bytes[offsets_[i]] = always ? 0xeb : static_cast<uint8_t>(0x70 | p.condition);
      layout->bytes[offsets_[i] + 1] = static_cast<uint8_t>(ShortTarget(p) - (offsets_[i] + 2));
      return absl::OkStatus();
    }
    const uint64_t target = p.outside ? p.to : layout->address + offsets_[p.to];
    if (always) return EmitNear({0xe9}, offsets_[i], target, layout);
    return EmitNear({0x0f, static_cast<uint8_t>(0x80 | p.condition)}, offsets_[i], target, layout);
  }

  absl::Status EmitPiece(size_t i, Layout* layout) const {
    const Piece& p = pieces_[i];
    if (p.jump != Jump::kNone) return EmitJump(i, layout);
    const std::vector<uint8_t>& bytes = p.code.bytes;
    std::copy(bytes.begin(), bytes.end(),
              layout->bytes.begin() + static_cast<int64_t>(offsets_[i]));
    if (p.code.displacement_at == 0) return absl::OkStatus();
    const uint64_t end = layout->address + offsets_[i] + bytes.size();
    const auto distance = static_cast<int64_t>(p.code.target - end);
    if (!Fits<int32_t>(distance)) {
      return absl::OutOfRangeError(absl::StrCat("the operand at 0x", absl::Hex(p.code.target),
                                                " is more than 2 GiB from a copy at 0x",
                                                absl::Hex(layout->address)));
    }
    Encode32(static_cast<uint64_t>(distance), &layout->bytes[offsets_[i] + p.code.displacement_at]);
    return absl::OkStatus();
  }

  std::vector<Piece> pieces_;
  size_t body_end_;
  std::vector<uint64_t> offsets_;
  std::vector<Layout::Pad> pads_;
  std::vector<uint64_t> pad_targets_;
  uint64_t size_ = 0;
};

}  // namespace

absl::StatusOr<Layout> LayOut(std::vector<Piece> pieces, size_t body_end, const Anchor& anchor) {
  Sheet sheet(std::move(pieces), body_end);
  sheet.Settle();
  return sheet.Emit(anchor);
}

}  // namespace perfd::agent
