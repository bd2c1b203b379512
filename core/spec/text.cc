#include "core/spec/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/base/utf8.h"

namespace perfd {
namespace {

constexpr size_t kMessageBytes = 64;

uint8_t Byte(absl::string_view text, size_t i) {
  return static_cast<uint8_t>(text[i]);
}

}  // namespace

bool IsValidUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool IsPrintable(absl::string_view text) {
  const auto control = [](char c) { return static_cast<uint8_t>(c) < 0x20 || c == 0x7F; };
  return std::none_of(text.begin(), text.end(), control) && IsValidUtf8(text);
}

std::string ForMessage(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    if (out.size() + std::max<size_t>(length, 1) > kMessageBytes) return out + "...";
    const bool shown = length > 1 || (length == 1 && Byte(text, 0) >= 0x20 && text[0] != 0x7F);
    if (shown) {
      out.append(text.data(), length);
    } else {
      out.push_back('?');
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

}  // namespace perfd
