// agent/variant/work.h - a variant in the making: what its transformations know and change.
//
// Shape    each family of transformations sets replacements in the draft; an instruction without one stays as it is.
// Source   Bendifallah 2015, 4.1-4.2; digest 4.3 (encodings), 4.4 (remarks).
#ifndef AGENT_VARIANT_WORK_H_
#define AGENT_VARIANT_WORK_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "agent/variant/copy.h"
#include "agent/variant/flow/dataflow.h"
#include "agent/variant/rewrite.h"

namespace perfd::agent {

struct Work {
  const LoopCode& loop;
  const VariantName& name;
  CopyTarget target;
  std::vector<Effect> effects;          // of the loop
  std::vector<RegisterSet> live_after;  // in a copy: nothing is live where a shadow leaves it
  RegisterSet written = 0;              // anywhere in the loop
  Draft draft;
  std::vector<bool>
      controlled;     // divisions and square roots whose operands come from the thread block
  AccessPairs pairs;  // besides the loop's own
  int pinned = 0;
  bool uses_block = false;
  std::vector<SelfPointer> self_pointers;
};

Work StartWork(const LoopCode& loop, const VariantName& name, const CopyTarget& target);

absl::Status SetReplacement(Work* work, uint32_t at, std::vector<Encoded> codes);

// In a copy nothing reads the register after instruction `at` before it is written; kNoRegister: there is none.
int DeadVector(const Work& work, uint32_t at);
int DeadGeneral(const Work& work, uint32_t at);
bool FlagsDead(const Work& work, uint32_t at);
// A vector register that the loop never writes.
int InvariantVector(const Work& work, uint32_t at);

// The access of instruction `at` as a load into a dead register, a comparison or a prefetch, whichever is possible.
absl::Status AccessOnly(Work* work, uint32_t at);

// deletion.cc: the operation goes, a memory source is still read (from `slot` when given).
absl::Status DeleteArithmetic(Work* work, uint32_t at, std::optional<uint32_t> slot);
// The access goes, the operation stays on registers.
absl::Status DeleteMemory(Work* work, uint32_t at);
// pin.cc: DL1. `also_deletes`: instructions whose arithmetic is deleted as well.
absl::Status PinAll(Work* work, const std::vector<bool>& also_deletes);

// control_operands.cc: the divisions and square roots that compute, through registers, on what one of these loads reads.
std::vector<bool> DivisionsFedBy(const LoopCode& loop, const std::vector<bool>& loads);
// Its operands become those of the thread block. `keep_access`: its own memory operand is still read.
absl::Status ControlOperands(Work* work, uint32_t at, bool keep_access,
                             std::optional<uint32_t> slot);

// copy.cc: everything that a name changes, but not what it observes (counts, traces).
absl::StatusOr<Work> ChangeLoop(const LoopCode& loop, const VariantName& name,
                                const CopyTarget& target, std::vector<Changed>* notes);
// The draft of `code`, which is that loop or holds it, as bytes. `plain`: the draft of REF, whose layout it may have.
absl::StatusOr<CodeCopy> FinishCopy(const LoopCode& code, const Draft& draft, const Draft& plain,
                                    const Work& work, const std::vector<Changed>& notes);

// dependences.cc: deleted writers become zero idioms where a reader would otherwise see an older value.
absl::Status RemoveAddedDependences(Work* work);
std::vector<Effect> DraftEffects(const Work& work);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_WORK_H_
