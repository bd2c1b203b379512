// core/spec/nearest.h - "did you mean ...?"
//
// Source   Optimal string alignment distance (Damerau 1964, restricted: no substring edited twice).
#ifndef CORE_SPEC_NEAREST_H_
#define CORE_SPEC_NEAREST_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace perfd {

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
size_t EditDistance(absl::string_view a, absl::string_view b);

// The closest candidate, if it is close enough to be a likely misspelling.
std::optional<std::string> Nearest(absl::string_view word,
                                   const std::vector<std::string>& candidates);

// "'of' is not one of on, off; did you mean 'off'?"
std::string NotAChoice(absl::string_view word, const std::vector<std::string>& choices);

}  // namespace perfd

#endif  // CORE_SPEC_NEAREST_H_
