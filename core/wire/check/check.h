// core/wire/check/check.h - the checks every FromProto is made of, and clean text for ToProto.
//
// Shape    Check*(value, bounds, field) -> OK or kInvalidArgument naming the field.
// Units    bounds are inclusive.
// Errors   kInvalidArgument.
// Threads  thread-safe (pure).
// Source   CleanText: well-formed UTF-8, Unicode Standard 3.9, table 3-7.
#ifndef CORE_WIRE_CHECK_CHECK_H_
#define CORE_WIRE_CHECK_CHECK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/wire/check/limits.h"

namespace perfd::wire {

absl::Status CheckRange(int64_t value, int64_t low, int64_t high, absl::string_view field);
absl::Status CheckCount(int64_t count, int64_t limit, absl::string_view field);
absl::Status CheckTotal(uint64_t value, absl::string_view field, uint64_t limit = kMaxTotal);
absl::Status CheckText(absl::string_view text, absl::string_view field,
                       size_t limit = kMaxTextBytes);
// Finite and within the bounds.
absl::Status CheckNumber(double value, double low, double high, absl::string_view field);
// A ratio 0..1, with room for rounding at the upper end.
absl::Status CheckRatio(double value, absl::string_view field);

// Protobuf refuses a whole message for one bad byte in a string, and names in binaries may hold any
// bytes: their DisplayForm is sent.
std::string CleanText(absl::string_view text, size_t limit = kMaxTextBytes);

// Enums on the wire are the model's value plus one; zero is an error.
template <typename Proto, typename Model>
Proto WireEnum(Model value) {
  return static_cast<Proto>(static_cast<int>(value) + 1);
}

template <typename Model, typename Proto>
absl::StatusOr<Model> ModelEnum(Proto value, Model last, absl::string_view field) {
  const int number = static_cast<int>(value) - 1;
  if (number < 0 || number > static_cast<int>(last)) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": unknown value ", static_cast<int>(value)));
  }
  return static_cast<Model>(number);
}

}  // namespace perfd::wire

#endif  // CORE_WIRE_CHECK_CHECK_H_
