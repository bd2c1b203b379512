// core/model/variant_name.h - the names of variants: changed copies of a loop, as job.yaml, reports and metrics spell them.
//
// Shape    a VariantName is one or more changes, written "NO_DIV+NO_RED"; a change may have a parameter: "GROUP(2)",
//          "PREFETCH(50)". Text() is canonical: changes in the order of the enumeration, so equal names have equal texts.
// Units    GROUP: index of a static group, 0..63; PREFETCH: percent of extra accesses, 1..100.
// Errors   ParseVariantName says which part is wrong and the nearest known name.
// Source   design: Variants; Bendifallah 2015, 4.2 (catalogue).
#ifndef CORE_MODEL_VARIANT_NAME_H_
#define CORE_MODEL_VARIANT_NAME_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perfd {

enum class Change : uint8_t {
  kRef,       // the loop itself
  kCount,     // + iteration counter
  kTrace,     // + the address range of every access
  kLs,        // arithmetic deleted
  kFp,        // memory operations deleted
  kDl1,       // every memory operand pinned to a line of its own in L1
  kNoDiv,     // divisions deleted
  kNoSqrt,    // square roots deleted
  kNoRed,     // accumulating operations deleted
  kNoCall,    // calls deleted
  kS2l,       // stores become loads
  kNoStore,   // stores deleted
  kGroup,     // accesses of one group of references deleted
  kPrefetch,  // extra prefetches that hit L1
  kCtrl,      // only the control
  kRefFtz,  // the loop itself with denormals flushed to zero: base of variants that may meet denormals
  kRefCtl,  // the loop itself with controlled operands of division and square root: base of FP and DL1 of such loops
};
inline constexpr int kChangeCount = 17;

struct VariantPart {
  Change change = Change::kRef;
  int32_t parameter = 0;  // of kGroup and kPrefetch

  bool operator==(const VariantPart&) const = default;
};

struct VariantName {
  std::vector<VariantPart> parts;

  bool Has(Change change) const;
  // The parameter of `change`; 0 when the name has no such part.
  int32_t Parameter(Change change) const;
  std::string Text() const;
  bool operator==(const VariantName&) const = default;
};

const char* ChangeName(Change change);
// What the change tells, for people: "is it bound by data access?"
const char* ChangeQuestion(Change change);
VariantName SingleVariant(Change change, int32_t parameter = 0);
absl::StatusOr<VariantName> ParseVariantName(absl::string_view text);

}  // namespace perfd

#endif  // CORE_MODEL_VARIANT_NAME_H_
