#include "core/model/variant_name.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"

namespace perfd {
namespace {

constexpr std::array<const char*, kChangeCount> kNames = {
    "REF",     "COUNT", "TRACE",    "LS",    "FP",       "DL1",  "NO_DIV",  "NO_SQRT", "NO_RED",
    "NO_CALL", "S2L",   "NO_STORE", "GROUP", "PREFETCH", "CTRL", "REF_FTZ", "REF_CTL"};

// Source: design, 7 Variants.
constexpr std::array<const char*, kChangeCount> kQuestions = {
    "the loop itself: the base of all others",
    "the loop with an iteration counter: its trip count",
    "the loop recording its addresses: what does it touch?",
    "arithmetic deleted: is it bound by data access?",
    "memory operations deleted: is it bound by arithmetic?",
    "every memory operand pinned to L1: what would a perfect cache bring?",
    "divisions deleted: what do they cost?",
    "square roots deleted: what do they cost?",
    "accumulating operations deleted: what does the chain cost?",
    "calls deleted: what do they cost?",
    "stores become loads: what do stores and coherence cost?",
    "stores deleted: what do they cost?",
    "accesses of array group k deleted: which array costs?",
    "p % extra prefetches: how much load bandwidth is spare?",
    "only the control: loop overhead",
    "the loop with denormals flushed to zero: a base",
    "the loop with controlled operands of division and square root: a base"};

struct Range {
  int32_t low = 0;
  int32_t high = 0;
};

// The parameters a change takes; {0, 0}: none.
Range ParameterRange(Change change) {
  if (change == Change::kGroup) return {0, 63};
  if (change == Change::kPrefetch) return {1, 100};
  return {0, 0};
}

bool TakesParameter(Change change) {
  return ParameterRange(change).high > 0;
}

std::string KnownNames() {
  return absl::StrJoin(kNames, ", ", [](std::string* out, const char* name) {
    absl::StrAppend(out, name);
    if (absl::string_view(name) == "GROUP") absl::StrAppend(out, "(k)");
    if (absl::string_view(name) == "PREFETCH") absl::StrAppend(out, "(p)");
  });
}

absl::StatusOr<VariantPart> ParsePart(absl::string_view text) {
  const absl::string_view whole = text;
  absl::string_view parameter;
  bool has_parameter = false;
  const size_t open = text.find('(');
  if (open != absl::string_view::npos && absl::EndsWith(text, ")")) {
    parameter = text.substr(open + 1, text.size() - open - 2);
    text = text.substr(0, open);
    has_parameter = true;
  }
  const auto found =
      std::find_if(kNames.begin(), kNames.end(), [&](const char* n) { return text == n; });
  if (found == kNames.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown variant '", whole, "'; known: ", KnownNames(), ", combined with +"));
  }
  VariantPart part;
  part.change = static_cast<Change>(found - kNames.begin());
  const Range range = ParameterRange(part.change);
  if (has_parameter != TakesParameter(part.change)) {
    return absl::InvalidArgumentError(
        has_parameter ? absl::StrCat("variant ", text, " takes no parameter")
                      : absl::StrCat("variant ", text, " needs a parameter: ", text, "(", range.low,
                                     "..", range.high, ")"));
  }
  if (has_parameter && (!absl::SimpleAtoi(parameter, &part.parameter) ||
                        part.parameter < range.low || part.parameter > range.high)) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter of ", whole, " must be ", range.low, "..", range.high));
  }
  return part;
}

}  // namespace

const char* ChangeName(Change change) {
  return kNames.at(static_cast<size_t>(change));
}

const char* ChangeQuestion(Change change) {
  return kQuestions.at(static_cast<size_t>(change));
}

bool VariantName::Has(Change change) const {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const VariantPart& part) { return part.change == change; });
}

int32_t VariantName::Parameter(Change change) const {
  for (const VariantPart& part : parts) {
    if (part.change == change) return part.parameter;
  }
  return 0;
}

std::string VariantName::Text() const {
  return absl::StrJoin(parts, "+", [](std::string* out, const VariantPart& part) {
    absl::StrAppend(out, ChangeName(part.change));
    if (TakesParameter(part.change)) absl::StrAppend(out, "(", part.parameter, ")");
  });
}

VariantName SingleVariant(Change change, int32_t parameter) {
  return {{{change, parameter}}};
}

absl::StatusOr<VariantName> ParseVariantName(absl::string_view text) {
  VariantName name;
  for (absl::string_view piece : absl::StrSplit(text, '+')) {
    ASSIGN_OR_RETURN(const VariantPart part, ParsePart(absl::StripAsciiWhitespace(piece)));
    name.parts.push_back(part);
  }
  const auto order = [](const VariantPart& a, const VariantPart& b) {
    return std::tie(a.change, a.parameter) < std::tie(b.change, b.parameter);
  };
  std::sort(name.parts.begin(), name.parts.end(), order);
  const auto repeated = std::adjacent_find(name.parts.begin(), name.parts.end());
  if (repeated != name.parts.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("variant ", text, " names ", ChangeName(repeated->change), " twice"));
  }
  const bool bare = name.Has(Change::kRef) || name.Has(Change::kCount) || name.Has(Change::kTrace);
  if (bare && name.parts.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("REF, COUNT and TRACE cannot be combined (", text, ")"));
  }
  return name;
}

}  // namespace perfd
