#include "core/wire/check/check.h"

#include <algorithm>
#include <cmath>

#include "core/base/utf8.h"

namespace perfd::wire {
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

std::string CleanText(absl::string_view text, size_t limit) {
  return DisplayForm(text, limit);
}

}  // namespace perfd::wire
