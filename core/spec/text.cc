#include "core/spec/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace perfd {
namespace {

constexpr size_t kMessageBytes = 64;

uint8_t Byte(absl::string_view text, size_t i) {
  return static_cast<uint8_t>(text[i]);
}

// Length of the UTF-8 sequence at the front of `text`, 0 when it is not one. RFC 3629 section 4.
size_t SequenceLength(absl::string_view text) {
  const uint8_t lead = Byte(text, 0);
  if (lead < 0x80) return 1;
  size_t length = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;  // bounds of the second byte
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (text.size() < length || Byte(text, 1) < low || Byte(text, 1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((Byte(text, i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

bool IsValidUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
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
    const size_t length = SequenceLength(text);
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
