// core/spec/spec_key.h - the one table of keys: it drives parsing, checks, formatting, explain and
// the JSON Schema.
//
// Shape    keys in file order; a section stands before its members. Defaults are those of
// ProfileSpec itself. Units    low and high: ns for durations, ratio for percentages, Hz, a count,
// or bytes of text.
#ifndef CORE_SPEC_SPEC_KEY_H_
#define CORE_SPEC_SPEC_KEY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/model/profile_spec.h"

namespace perfd {

enum class KeyType {
  kSection,   // a map of further keys
  kConstant,  // must be exactly `choices`
  kText,
  kChoice,  // one of `choices`, separated by '|'
  kInteger,
  kDuration,
  kSpan,         // a duration, or auto
  kLongestSpan,  // a duration that goes with auto
  kPercent,
  kFrequency,
  kBoolean,
  kRanks,     // "0-7,9" or all
  kPids,      // sequence of process ids
  kVariants,  // sequence of names out of `choices`
};

// The member of a spec that a key stands for; nothing for sections and constants.
using SpecField =
    std::variant<std::monostate, std::string*, std::optional<std::string>*,
                 std::optional<uint32_t>*, int32_t*, int64_t*, double*, bool*, CallPaths*,
                 std::vector<int32_t>*, std::vector<std::string>*, std::vector<RankRange>*,
                 ProfileSpec*>;  // of a key that stands for more than one member

struct SpecKey {
  absl::string_view path;  // "hotspots.frequency"
  KeyType type;
  double low;
  double high;
  absl::string_view choices;
  absl::string_view example;
  absl::string_view meaning;
  SpecField (*field)(ProfileSpec& spec);
};

std::span<const SpecKey> SpecKeys();

// Nothing when there is no such key.
const SpecKey* FindSpecKey(absl::string_view path);

// "hotspots.frequency" -> "frequency", and its section "hotspots" ("" at the top).
absl::string_view LeafName(absl::string_view path);
absl::string_view SectionName(absl::string_view path);

// The sections whose measurements this version does not make yet.
bool IsMeasured(absl::string_view section);

}  // namespace perfd

#endif  // CORE_SPEC_SPEC_KEY_H_
