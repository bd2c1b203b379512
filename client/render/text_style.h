// client/render/text_style.h - what the terminal can show, and the small pieces every text view is made of.
//
// Shape    pure. Names come from binaries of strangers: Clean() keeps escape sequences off the terminal.
// Units    widths in columns, one per code point; ratios 0..1.
#ifndef CLIENT_RENDER_TEXT_STYLE_H_
#define CLIENT_RENDER_TEXT_STYLE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace perfd::client {

struct TextStyle {
  bool utf8 = false;   // bars of block characters; otherwise '#'
  bool color = false;  // ANSI colours
  int width = 100;     // columns of the terminal
};

enum class Paint { kBold, kDim, kRed, kYellow, kGreen };

std::string Painted(const TextStyle& style, Paint paint, absl::string_view text);

// Control characters (C0, DEL, C1) become '?'.
std::string Clean(absl::string_view text);

size_t Columns(absl::string_view text);

// At most `columns` wide; what is cut is replaced by "..", at the end or at the front.
std::string CutEnd(absl::string_view text, size_t columns);
std::string CutFront(absl::string_view text, size_t columns);

std::string PadRight(std::string text, size_t columns);
std::string PadLeft(std::string text, size_t columns);

// A bar of `cells` columns, filled to `ratio` (clamped to 0..1).
std::string Bar(const TextStyle& style, double ratio, int cells);

std::string Percent(double ratio);                // "41.2%"
std::string Interval95(double low, double high);  // "[40.1, 42.3]", percent
std::string Seconds(double seconds);              // "1.25", "0.0031"
std::string Bytes(uint64_t bytes);                // "12.0 MB"
std::string UtcTime(int64_t unix_ns);             // "2024-05-01 12:00:00 UTC", "-" for 0
std::string BaseName(absl::string_view path);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_TEXT_STYLE_H_
