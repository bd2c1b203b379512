#include "agent/variant/flow/far_branches.h"

#include <cstring>

namespace perfd {
namespace {

struct Form {
  uint8_t opcode_bytes = 0;  // 0: no branch
  uint8_t displacement_bytes = 0;
};

Form FormAt(std::span<const uint8_t> rest) {
  const uint8_t first = rest[0];
  if (first == 0xe8 || first == 0xe9) return {1, 4};
  if (first == 0x0f && rest.size() > 1 && (rest[1] & 0xf0) == 0x80) return {2, 4};
  if (first == 0xeb || (first & 0xf0) == 0x70 || (first & 0xfc) == 0xe0) return {1, 1};
  return {};
}

int64_t Displacement(const uint8_t* at, int bytes) {
  if (bytes == 1) return static_cast<int8_t>(*at);
  int32_t value = 0;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

}  // namespace

std::vector<uint64_t> BranchesInto(std::span<const uint8_t> text, uint64_t address,
                                   const CodeRange& target, const CodeRange& skip) {
  std::vector<uint64_t> found;
  for (size_t i = 0; i < text.size(); ++i) {
    const Form form = FormAt(text.subspan(i));
    const size_t length = size_t{form.opcode_bytes} + form.displacement_bytes;
    if (form.opcode_bytes == 0 || i + length > text.size()) continue;
    const uint64_t from = address + i;
    if (from >= skip.low && from < skip.high) continue;
    const uint64_t to =
        from + length +
        static_cast<uint64_t>(Displacement(&text[i + form.opcode_bytes], form.displacement_bytes));
    if (to >= target.low && to < target.high) found.push_back(from);
  }
  return found;
}

}  // namespace perfd
