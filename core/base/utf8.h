// core/base/utf8.h - where one character of UTF-8 ends, which ones act on a terminal, and how bytes that are none are shown. Foreign
//                    bytes.
//
// Source   Unicode Standard, table 3-7 (RFC 3629 section 4): the bounds of the second byte keep out overlong forms, surrogates
//          and everything above U+10FFFF. Unicode Standard Annex 9, table 4: the characters that turn the direction of text.
#ifndef CORE_BASE_UTF8_H_
#define CORE_BASE_UTF8_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace perfd {

// Bytes of the well-formed sequence at the start of `text`, which is not empty; 0: there is none.
inline size_t Utf8SequenceLength(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < length) return 0;
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  return length;
}

// Of a well-formed sequence.
inline uint32_t CodePoint(absl::string_view sequence) {
  const auto byte = [sequence](size_t i) { return static_cast<uint8_t>(sequence[i]); };
  if (sequence.size() == 1) return byte(0);
  uint32_t point = byte(0) & (0xFFU >> (sequence.size() + 1));
  for (size_t i = 1; i < sequence.size(); ++i) point = point << 6 | (byte(i) & 0x3FU);
  return point;
}

// A well-formed sequence that a reader does not see but is led by: control characters (C0, DEL, C1), separators of lines, and marks
// that show the text after them in another order than it has.
inline bool IsControlCharacter(absl::string_view sequence) {
  const auto byte = [sequence](size_t i) { return static_cast<uint8_t>(sequence[i]); };
  if (sequence.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  if (sequence.size() == 2)  // U+0080..U+009F, U+061C
    return (byte(0) == 0xC2 && byte(1) < 0xA0) || (byte(0) == 0xD8 && byte(1) == 0x9C);
  if (sequence.size() != 3 || byte(0) != 0xE2) return false;
  if (byte(1) == 0x80)  // U+200E, U+200F, U+2028..U+202E
    return byte(2) == 0x8E || byte(2) == 0x8F || (byte(2) >= 0xA8 && byte(2) <= 0xAE);
  return byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9;  // U+2066..U+2069
}

// Each byte that is not part of a well-formed sequence becomes '?'; at most `limit` bytes are kept. Names of files and of functions
// are bytes: what a name is compared or opened by stays as it is, and what came back as it is shown is compared as it is shown.
inline std::string DisplayForm(absl::string_view text, size_t limit = SIZE_MAX) {
  std::string shown;
  shown.reserve(std::min(text.size(), limit));
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    const size_t step = std::max<size_t>(length, 1);
    if (shown.size() + step > limit) break;
    shown.append(length == 0 ? "?" : text.data(), step);
    text.remove_prefix(step);
  }
  return shown;
}

}  // namespace perfd

#endif  // CORE_BASE_UTF8_H_
