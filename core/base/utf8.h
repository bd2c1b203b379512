// core/base/utf8.h - where one character of UTF-8 ends, and how bytes that are none are shown. Foreign bytes.
//
// Source   Unicode Standard, table 3-7 (RFC 3629 section 4): the bounds of the second byte keep out overlong forms, surrogates
//          and everything above U+10FFFF.
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
