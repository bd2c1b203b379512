#include "core/wire/check.h"

#include <algorithm>
#include <cmath>

namespace perfd::wire {
namespace {

bool IsTail(unsigned char c) {
  return (c & 0xC0) == 0x80;
}

struct FirstByte {
  size_t length;             // of the whole sequence; 0: cannot start one
  unsigned char second_low;  // bounds of the second byte
  unsigned char second_high;
};

// Unicode Standard, table 3-7: the second byte's bounds keep out overlong forms, surrogates and
// everything above U+10FFFF.
FirstByte Classify(unsigned char c) {
  if (c < 0x80) return {1, 0, 0};
  if (c >= 0xC2 && c <= 0xDF) return {2, 0x80, 0xBF};
  if (c == 0xE0) return {3, 0xA0, 0xBF};
  if (c == 0xED) return {3, 0x80, 0x9F};
  if (c >= 0xE1 && c <= 0xEF) return {3, 0x80, 0xBF};
  if (c == 0xF0) return {4, 0x90, 0xBF};
  if (c >= 0xF1 && c <= 0xF3) return {4, 0x80, 0xBF};
  if (c == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// Length of the well-formed sequence at the start of `text`, or 0.
size_t SequenceLength(absl::string_view text) {
  const FirstByte first = Classify(static_cast<unsigned char>(text[0]));
  if (first.length <= 1) return first.length;
  if (text.size() < first.length) return 0;
  const unsigned char second = static_cast<unsigned char>(text[1]);
  if (second < first.second_low || second > first.second_high) return 0;
  for (size_t i = 2; i < first.length; ++i) {
    if (!IsTail(static_cast<unsigned char>(text[i]))) return 0;
  }
  return first.length;
}

}  // namespace

absl::Status CheckRange(int64_t value, int64_t low, int64_t high, absl::string_view field) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": ", value, " is not in ", low, "..", high));
}

absl::Status CheckCount(int64_t count, int64_t limit, absl::string_view field) {
  if (count <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", count, " entries, at most ", limit));
}

absl::Status CheckTotal(uint64_t value, absl::string_view field, uint64_t limit) {
  if (value <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", value, " is more than ", limit));
}

absl::Status CheckText(absl::string_view text, absl::string_view field, size_t limit) {
  if (text.size() <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": ", text.size(), " bytes, at most ", limit));
}

absl::Status CheckNumber(double value, double low, double high, absl::string_view field) {
  if (std::isfinite(value) && value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": ", value, " is not in ", low, "..", high));
}

absl::Status CheckRatio(double value, absl::string_view field) {
  return CheckNumber(value, 0, 1 + 1e-9, field);
}

std::string CleanText(absl::string_view text) {
  std::string clean;
  clean.reserve(std::min(text.size(), kMaxTextBytes));
  for (size_t i = 0; i < text.size();) {
    const size_t length = SequenceLength(text.substr(i));
    if (clean.size() + std::max<size_t>(length, 1) > kMaxTextBytes) break;
    if (length == 0) {
      clean.push_back('?');
      ++i;
    } else {
      clean.append(text.data() + i, length);
      i += length;
    }
  }
  return clean;
}

}  // namespace perfd::wire
