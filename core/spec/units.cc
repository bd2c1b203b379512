#include "core/spec/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "absl/numeric/int128.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "core/spec/text.h"

namespace perfd {
namespace {

constexpr size_t kMaxQuantityBytes = 40;
constexpr size_t kMaxIntegerDigits = 18;
constexpr size_t kMaxFractionDigits = 9;

struct Unit {
  absl::string_view name;
  int64_t size;
};

constexpr std::array<Unit, 7> kDurationUnits = {{{"d", 86'400'000'000'000},
                                                 {"h", 3'600'000'000'000},
                                                 {"m", 60'000'000'000},
                                                 {"s", 1'000'000'000},
                                                 {"ms", 1'000'000},
                                                 {"us", 1'000},
                                                 {"ns", 1}}};

template <typename... Args>
absl::Status Bad(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}

size_t CountDigits(absl::string_view text) {
  size_t n = 0;
  while (n < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[n]))) ++n;
  return n;
}

// An unsigned decimal number: its digits before and after the point.
struct Decimal {
  uint64_t whole = 0;
  uint64_t fraction = 0;
  uint64_t fraction_scale = 1;  // 10^digits
};

// Takes a decimal number off the front of `text`; false when there is none or it is too long.
bool TakeDecimal(absl::string_view* text, Decimal* number) {
  const size_t whole = CountDigits(*text);
  if (whole == 0 || whole > kMaxIntegerDigits) return false;
  if (!absl::SimpleAtoi(text->substr(0, whole), &number->whole)) return false;
  text->remove_prefix(whole);
  if (!absl::StartsWith(*text, ".")) return true;
  const size_t digits = CountDigits(text->substr(1));
  if (digits == 0 || digits > kMaxFractionDigits) return false;
  if (!absl::SimpleAtoi(text->substr(1, digits), &number->fraction)) return false;
  for (size_t i = 0; i < digits; ++i) number->fraction_scale *= 10;
  text->remove_prefix(1 + digits);
  return true;
}

// number * size, when that is a whole number that fits an int64_t.
bool Scale(const Decimal& number, int64_t size, int64_t* result) {
  const absl::uint128 unit = static_cast<uint64_t>(size);
  const absl::uint128 part = number.fraction * unit;
  if (part % number.fraction_scale != 0) return false;
  const absl::uint128 total = number.whole * unit + part / number.fraction_scale;
  if (total > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return false;
  *result = static_cast<int64_t>(absl::Uint128Low64(total));
  return true;
}

// The unit name at the front: letters up to the next digit.
absl::string_view TakeUnit(absl::string_view* text) {
  size_t n = 0;
  while (n < text->size() && absl::ascii_isalpha(static_cast<unsigned char>((*text)[n]))) ++n;
  const absl::string_view unit = text->substr(0, n);
  text->remove_prefix(n);
  return unit;
}

int64_t DurationUnit(absl::string_view name) {
  for (const Unit& unit : kDurationUnits) {
    if (unit.name == name) return unit.size;
  }
  return 0;
}

constexpr char kDurationForm[] = "a duration such as 60s, 2m or 1h (units ns, us, ms, s, m, h, d)";

}  // namespace

absl::StatusOr<int64_t> ParseDuration(absl::string_view text) {
  absl::string_view rest = text;
  if (rest.empty() || rest.size() > kMaxQuantityBytes)
    return Bad("'", ForMessage(text), "' is not ", kDurationForm);
  int64_t total = 0;
  while (!rest.empty()) {
    Decimal number;
    if (!TakeDecimal(&rest, &number)) return Bad("'", ForMessage(text), "' is not ", kDurationForm);
    const absl::string_view name = TakeUnit(&rest);
    if (name.empty()) return Bad("'", ForMessage(text), "' lacks a unit; write ", kDurationForm);
    const int64_t unit = DurationUnit(name);
    if (unit == 0) return Bad("unknown unit '", ForMessage(name), "'; write ", kDurationForm);
    int64_t part = 0;
    if (!Scale(number, unit, &part) || part > std::numeric_limits<int64_t>::max() - total)
      return Bad("'", ForMessage(text), "' is too long or not a whole number of nanoseconds");
    total += part;
  }
  return total;
}

std::string FormatDuration(int64_t ns) {
  if (ns == 0) return "0s";
  for (const Unit& unit : kDurationUnits) {
    if (ns % unit.size == 0) return absl::StrCat(ns / unit.size, unit.name);
  }
  return absl::StrCat(ns, "ns");
}

absl::StatusOr<double> ParsePercent(absl::string_view text) {
  absl::string_view number = text;
  const bool has_unit = absl::ConsumeSuffix(&number, "%");
  const bool plain = !number.empty() && number.size() <= kMaxQuantityBytes &&
                     absl::ascii_isdigit(static_cast<unsigned char>(number[0])) &&
                     number.find_first_not_of("0123456789.e-+") == absl::string_view::npos;
  double value = 0;
  if (!plain || !absl::SimpleAtod(number, &value) || !std::isfinite(value))
    return Bad("'", ForMessage(text), "' is not a percentage such as 2% or 0.5%");
  if (!has_unit) return Bad("'", ForMessage(text), "' lacks a unit; write a percentage such as 2%");
  // "2%" becomes "2e-2": one correctly rounded conversion, so that formatting can be undone
  // exactly.
  const size_t exponent = number.find('e');
  int32_t power = 0;
  if (exponent != absl::string_view::npos && !absl::SimpleAtoi(number.substr(exponent + 1), &power))
    return Bad("'", ForMessage(text), "' is not a percentage such as 2% or 0.5%");
  if (power < -1000 || power > 1000) return Bad("'", ForMessage(text), "' is out of range");
  if (!absl::SimpleAtod(absl::StrCat(number.substr(0, exponent), "e", power - 2), &value))
    return Bad("'", ForMessage(text), "' is not a percentage such as 2% or 0.5%");
  return value;
}

std::string FormatPercent(double ratio) {
  // Shortest digits that name this double, then the decimal point moves two places.
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), ratio,
                                 std::chars_format::scientific);
  const absl::string_view text(buffer.data(), static_cast<size_t>(end.ptr - buffer.data()));
  const size_t e = text.find('e');
  int exponent = 0;
  if (e == absl::string_view::npos || !absl::SimpleAtoi(text.substr(e + 1), &exponent))
    return absl::StrCat(text, "%");  // inf, nan: refused when read back
  exponent += 2;
  std::string digits(text.substr(0, e));
  if (exponent < -6 || exponent > 12) return absl::StrCat(digits, "e", exponent, "%");
  if (digits.size() > 1) digits.erase(1, 1);  // the point
  if (exponent < 0) {
    digits = absl::StrCat("0.", std::string(static_cast<size_t>(-exponent) - 1, '0'), digits);
  } else {
    const size_t whole = static_cast<size_t>(exponent) + 1;
    if (digits.size() < whole) digits.append(whole - digits.size(), '0');
    if (digits.size() > whole)
      digits = absl::StrCat(digits.substr(0, whole), ".", digits.substr(whole));
  }
  if (ratio == 0) return "0%";
  return digits + "%";
}

absl::StatusOr<int32_t> ParseFrequency(absl::string_view text) {
  absl::string_view rest = text;
  Decimal number;
  if (text.size() > kMaxQuantityBytes || !TakeDecimal(&rest, &number))
    return Bad("'", ForMessage(text), "' is not a frequency such as 199Hz");
  if (absl::StartsWith(rest, " ")) rest.remove_prefix(1);
  int64_t unit = 0;
  if (absl::EqualsIgnoreCase(rest, "hz")) unit = 1;
  if (absl::EqualsIgnoreCase(rest, "khz")) unit = 1000;
  if (rest.empty())
    return Bad("'", ForMessage(text), "' lacks a unit; write a frequency such as 199Hz");
  if (unit == 0) return Bad("unknown unit '", ForMessage(rest), "'; write Hz or kHz");
  int64_t hz = 0;
  if (!Scale(number, unit, &hz) || hz > std::numeric_limits<int32_t>::max())
    return Bad("'", ForMessage(text), "' is too large or not a whole number of Hz");
  return static_cast<int32_t>(hz);
}

std::string FormatFrequency(int32_t hz) {
  return absl::StrCat(hz, "Hz");
}

absl::StatusOr<int64_t> ParseInteger(absl::string_view text) {
  absl::string_view digits = text;
  absl::ConsumePrefix(&digits, "-");
  int64_t value = 0;
  const bool plain = !digits.empty() && CountDigits(digits) == digits.size() &&
                     digits.size() <= kMaxIntegerDigits && absl::SimpleAtoi(text, &value);
  if (!plain) return Bad("'", ForMessage(text), "' is not a whole number");
  // 010 is eight to YAML 1.1 and ten to people: refuse to choose.
  if (digits.size() > 1 && digits[0] == '0')
    return Bad("'", ForMessage(text), "' has a leading zero");
  return value;
}

absl::StatusOr<std::vector<RankRange>> ParseRanks(absl::string_view text) {
  std::vector<RankRange> ranks;
  if (text == "all") return ranks;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    part = absl::StripAsciiWhitespace(part);
    if (ranks.size() >= kMaxRankRanges) return Bad("more than ", kMaxRankRanges, " rank ranges");
    const size_t dash = part.find('-');
    const auto first = ParseInteger(part.substr(0, dash));
    const auto last = dash == absl::string_view::npos ? first : ParseInteger(part.substr(dash + 1));
    if (!first.ok() || !last.ok())
      return Bad("'", ForMessage(part), "' is not a rank or a range of ranks such as 0-7,9");
    if (*first < 0 || *last > std::numeric_limits<int32_t>::max())
      return Bad("rank in '", ForMessage(part), "' is out of range");
    if (*last < *first) return Bad("'", ForMessage(part), "' ends before it begins");
    ranks.push_back({static_cast<int32_t>(*first), static_cast<int32_t>(*last)});
  }
  return ranks;
}

std::string FormatRanks(const std::vector<RankRange>& ranks) {
  if (ranks.empty()) return "all";
  std::string text;
  for (const RankRange& range : ranks) {
    absl::StrAppend(&text, text.empty() ? "" : ",", range.first);
    if (range.last != range.first) absl::StrAppend(&text, "-", range.last);
  }
  return text;
}

}  // namespace perfd
