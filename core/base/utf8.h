// core/base/utf8.h - where one character of UTF-8 ends. Foreign bytes.
//
// Source   Unicode Standard, table 3-7 (RFC 3629 section 4): the bounds of the second byte keep out overlong forms, surrogates
//          and everything above U+10FFFF.
#ifndef CORE_BASE_UTF8_H_
#define CORE_BASE_UTF8_H_

#include <cstddef>
#include <cstdint>

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

}  // namespace perfd

#endif  // CORE_BASE_UTF8_H_
