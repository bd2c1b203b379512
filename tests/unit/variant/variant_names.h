// tests/unit/variant/variant_names.h - the names that tests ask copies for.
#ifndef TESTS_UNIT_VARIANT_VARIANT_NAMES_H_
#define TESTS_UNIT_VARIANT_VARIANT_NAMES_H_

#include <vector>

#include "agent/variant/loop_code.h"
#include "core/model/variant_name.h"

namespace perfd::agent {

// As a shadow's cache has them beside each variant: COUNT comes first.
inline VariantName Counted(VariantName name) {
  name.parts.insert(name.parts.begin(), {Change::kCount, 0});
  return name;
}

// Every change of the catalogue, each group of accesses, and combinations.
inline std::vector<VariantName> CatalogueOf(const LoopCode& loop) {
  std::vector<VariantName> names;
  for (const char* text :
       {"REF",           "COUNT",           "TRACE",        "LS",        "FP",
        "DL1",           "NO_DIV",          "NO_SQRT",      "NO_RED",    "NO_CALL",
        "S2L",           "NO_STORE",        "CTRL",         "REF_FTZ",   "REF_CTL",
        "PREFETCH(10)",  "PREFETCH(50)",    "LS+DL1",       "FP+NO_RED", "NO_DIV+NO_SQRT",
        "PREFETCH(100)", "NO_STORE+NO_DIV", "NO_RED+NO_DIV"})
    names.push_back(*ParseVariantName(text));
  for (int32_t group = 0; group < loop.groups; ++group)
    names.push_back(SingleVariant(Change::kGroup, group));
  return names;
}

}  // namespace perfd::agent

#endif  // TESTS_UNIT_VARIANT_VARIANT_NAMES_H_
