#include "core/spec/nearest.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/spec/text.h"

namespace perfd {
namespace {

constexpr size_t kMaxWordBytes = 64;

}  // namespace

size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before(b.size() + 1);  // row i - 2
  std::vector<size_t> last(b.size() + 1);    // row i - 1
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::optional<std::string> Nearest(absl::string_view word,
                                   const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > kMaxWordBytes) return std::nullopt;
  const std::string lower = absl::AsciiStrToLower(word);
  std::optional<std::string> best;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(lower, absl::AsciiStrToLower(candidate));
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

std::string NotAChoice(absl::string_view word, const std::vector<std::string>& choices) {
  std::string error =
      absl::StrCat("'", ForMessage(word), "' is not one of ", absl::StrJoin(choices, ", "));
  if (const auto near = Nearest(word, choices); near.has_value())
    absl::StrAppend(&error, "; did you mean '", *near, "'?");
  return error;
}

}  // namespace perfd
