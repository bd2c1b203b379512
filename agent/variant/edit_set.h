// agent/variant/edit_set.h - which instructions a variant's name asks to change, and how; the black list already applied.
//
// Source   design, section 7; Bendifallah 2015, 4.2; digest 3.2-3.4.
#ifndef AGENT_VARIANT_EDIT_SET_H_
#define AGENT_VARIANT_EDIT_SET_H_

#include <vector>

#include "absl/status/statusor.h"
#include "agent/variant/loop_code.h"
#include "core/model/variant_name.h"

namespace perfd::agent {

struct EditSet {
  std::vector<bool> arithmetic;  // delete the operation
  std::vector<bool> access;      // delete the memory operand
  std::vector<bool> all;         // delete the instruction
  std::vector<bool> load_only;   // stores become loads
  bool pin = false;

  bool Any(size_t i) const { return arithmetic[i] || access[i] || all[i] || load_only[i]; }
};

// Whether `name` would change instruction `n` if nothing stood against it (what control and addresses are made of, what cannot
// be rewritten). DL1 counts its accesses itself.
bool IsOfItsClass(const LoopCode& loop, const VariantName& name, size_t n);

// InvalidArgument: a group that the loop has not.
absl::StatusOr<EditSet> MakeEditSet(const LoopCode& loop, const VariantName& name);

// Divisions and square roots that some variant may starve: their operands are controlled in REF_CTL.
std::vector<bool> ControlledOperations(const LoopCode& loop);
// Loads that the edits take away or redirect.
std::vector<bool> TakenLoads(const LoopCode& loop, const EditSet& edits);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_EDIT_SET_H_
