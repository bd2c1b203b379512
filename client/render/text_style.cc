#include "client/render/text_style.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "core/base/utf8.h"

namespace perfd::client {
namespace {

bool IsContinuation(char c) {
  return (static_cast<uint8_t>(c) & 0xC0) == 0x80;
}

// Byte offset of the code point number `index`.
size_t Offset(absl::string_view text, size_t index) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsContinuation(text[i])) continue;
    if (index-- == 0) return i;
  }
  return text.size();
}

// Source: ECMA-48 SGR parameters.
const char* Code(Paint paint) {
  switch (paint) {
    case Paint::kBold:
      return "1";
    case Paint::kDim:
      return "2";
    case Paint::kRed:
      return "31";
    case Paint::kYellow:
      return "33";
    case Paint::kGreen:
      return "32";
  }
  return "0";
}

}  // namespace

std::string Painted(const TextStyle& style, Paint paint, absl::string_view text) {
  if (!style.color) return std::string(text);
  return absl::StrCat("\x1b[", Code(paint), "m", text, "\x1b[0m");
}

std::string Clean(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = std::max<size_t>(Utf8SequenceLength(text), 1);
    const absl::string_view character = text.substr(0, length);
    absl::StrAppend(&out, IsControlCharacter(character) ? "?" : character);
    text.remove_prefix(length);
  }
  return out;
}

size_t Columns(absl::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !IsContinuation(c); }));
}

std::string CutEnd(absl::string_view text, size_t columns) {
  if (Columns(text) <= columns) return std::string(text);
  if (columns <= 2) return std::string(text.substr(0, Offset(text, columns)));
  return absl::StrCat(text.substr(0, Offset(text, columns - 2)), "..");
}

std::string CutFront(absl::string_view text, size_t columns) {
  const size_t have = Columns(text);
  if (have <= columns) return std::string(text);
  if (columns <= 2) return std::string(text.substr(Offset(text, have - columns)));
  return absl::StrCat("..", text.substr(Offset(text, have - (columns - 2))));
}

std::string PadRight(std::string text, size_t columns) {
  const size_t have = Columns(text);
  if (have < columns) text.append(columns - have, ' ');
  return text;
}

std::string PadLeft(std::string text, size_t columns) {
  const size_t have = Columns(text);
  if (have < columns) text.insert(0, columns - have, ' ');
  return text;
}

std::string Bar(const TextStyle& style, double ratio, int cells) {
  const double filled = std::clamp(std::isfinite(ratio) ? ratio : 0.0, 0.0, 1.0) * cells;
  if (!style.utf8) {
    const auto full = static_cast<size_t>(std::lround(filled));
    return std::string(full, '#') + std::string(static_cast<size_t>(cells) - full, ' ');
  }
  // Source: Unicode Block Elements, U+2588 full block down to U+258F one eighth.
  static constexpr std::array<const char*, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<size_t>(std::lround(filled * 8));
  std::string bar;
  for (size_t i = 0; i < eighths / 8; ++i) bar += "█";
  bar += kEighths[eighths % 8];
  return PadRight(std::move(bar), static_cast<size_t>(cells));
}

std::string Percent(double ratio) {
  return absl::StrFormat("%.1f%%", ratio * 100);
}

std::string Interval95(double low, double high) {
  return absl::StrFormat("[%.1f, %.1f]", low * 100, high * 100);
}

std::string Seconds(double seconds) {
  return absl::StrFormat("%.*f", std::abs(seconds) < 0.1 ? 4 : 2, seconds);
}

std::string Bytes(uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  return absl::StrFormat("%.*f %s", unit == 0 ? 0 : 1, value, kUnits[unit]);
}

std::string UtcTime(int64_t unix_ns) {
  if (unix_ns == 0) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromUnixNanos(unix_ns),
                          absl::UTCTimeZone());
}

std::string BaseName(absl::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

}  // namespace perfd::client
