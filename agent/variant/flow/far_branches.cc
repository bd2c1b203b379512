#include "agent/variant/flow/far_branches.h"

#include <algorithm>
#include <cstring>

namespace perfd::agent {
namespace {

// CALL, JMP and Jcc end with a displacement of four bytes. How many bytes of opcode stand before the one at `at`; 0: none of them.
uint64_t OpcodeBefore(std::span<const uint8_t> text, size_t at) {
  if (at >= 1 && (text[at - 1] == 0xe8 || text[at - 1] == 0xe9)) return 1;
  if (at >= 2 && text[at - 2] == 0x0f && (text[at - 1] & 0xf0) == 0x80) return 2;
  return 0;
}

bool IsShort(uint8_t opcode) {
  return opcode == 0xeb || (opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0;
}

class Search {
 public:
  Search(std::span<const uint8_t> text, uint64_t address, const CodeRange& target,
         std::span<const CodeRange> skip)
      : text_(text), address_(address), target_(target), skip_(skip) {}

  // Whole texts are searched: where a displacement would lead is asked before what stands before it.
  void Near() {
    const auto low = static_cast<uint32_t>(target_.low);
    const auto size = static_cast<uint32_t>(target_.high - target_.low);
    auto end = static_cast<uint32_t>(address_ + kNear);
    for (size_t i = 0; i + kNear <= text_.size(); ++i, ++end) {
      uint32_t displacement = 0;
      std::memcpy(&displacement, &text_[i], kNear);
      if (displacement + end - low >= size) continue;
      const uint64_t opcode = OpcodeBefore(text_, i);
      if (opcode != 0) Add(i - opcode, opcode + kNear, static_cast<int32_t>(displacement));
    }
  }

  // Two bytes, and no farther than 128 of them.
  void Short() {
    constexpr uint64_t kReach = 130;
    const uint64_t begin = target_.low - std::min(target_.low, kReach);
    size_t i = begin > address_ ? begin - address_ : 0;
    for (; i + 2 <= text_.size() && address_ + i < target_.high + kReach; ++i) {
      if (IsShort(text_[i])) Add(i, 2, static_cast<int8_t>(text_[i + 1]));
    }
  }

  std::vector<uint64_t> Found() {
    std::sort(found_.begin(), found_.end());
    return std::move(found_);
  }

 private:
  static constexpr size_t kNear = 4;

  void Add(size_t at, uint64_t length, int64_t displacement) {
    const uint64_t from = address_ + at;
    const uint64_t to = from + length + static_cast<uint64_t>(displacement);
    const bool skipped = std::any_of(skip_.begin(), skip_.end(), [from](const CodeRange& range) {
      return range.Contains(from);
    });
    if (!skipped && to >= target_.low && to < target_.high) found_.push_back(from);
  }

  std::span<const uint8_t> text_;
  uint64_t address_;
  CodeRange target_;
  std::span<const CodeRange> skip_;
  std::vector<uint64_t> found_;
};

}  // namespace

std::vector<uint64_t> BranchesInto(std::span<const uint8_t> text, uint64_t address,
                                   const CodeRange& target, std::span<const CodeRange> skip) {
  if (target.low >= target.high) return {};
  Search search(text, address, target, skip);
  search.Near();
  search.Short();
  return search.Found();
}

}  // namespace perfd::agent
