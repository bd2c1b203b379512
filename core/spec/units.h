// core/spec/units.h - quantities as people write them: "90s", "2%", "199Hz", "0-7,9".
//
// Shape    Parse(Format(x)) == x for every x that is valid in a spec.
// Units    durations in ns, ratios 0..1 for percentages, Hz.
// Errors   kInvalidArgument: what is wrong and an example. A missing unit is an error, never
// guessed.
#ifndef CORE_SPEC_UNITS_H_
#define CORE_SPEC_UNITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/profile_spec.h"

namespace perfd {

// "60s", "1.5h", "1h30m". Units ns, us, ms, s, m, h, d; whole nanoseconds only.
absl::StatusOr<int64_t> ParseDuration(absl::string_view text);
// The largest unit that divides: 90 s -> "90s", 120 s -> "2m", 0 -> "0s".
std::string FormatDuration(int64_t ns);

// "2%", "0.5%".
absl::StatusOr<double> ParsePercent(absl::string_view text);
std::string FormatPercent(double ratio);

// "199Hz", "2kHz"; whole Hz only.
absl::StatusOr<int32_t> ParseFrequency(absl::string_view text);
std::string FormatFrequency(int32_t hz);

// Decimal digits with an optional minus sign, no leading zeros.
absl::StatusOr<int64_t> ParseInteger(absl::string_view text);

// "0-7,9" or "all" (an empty list). At most 1024 ranges.
absl::StatusOr<std::vector<RankRange>> ParseRanks(absl::string_view text);
std::string FormatRanks(const std::vector<RankRange>& ranks);

inline constexpr size_t kMaxRankRanges = 1024;

}  // namespace perfd

#endif  // CORE_SPEC_UNITS_H_
