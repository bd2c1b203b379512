// Operand control: division and square root take a time that depends on their operands.
// Source: Bendifallah 2015, 6.3 (REF(V2) and FP(V2) load the same constants).
#include <bit>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "agent/variant/encode.h"
#include "agent/variant/thread_block.h"
#include "agent/variant/work.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

struct Operands {
  uint32_t dividend = 0;
  uint32_t divisor = 0;
};

Operands OperandsOf(const LoopInstruction& i) {
  const bool single = absl::EndsWith(i.mnemonic, "ps") || absl::EndsWith(i.mnemonic, "ss");
  if (single) return {kControlDividendF32, kControlDivisorF32};
  return {kControlDividendF64, kControlDivisorF64};
}

}  // namespace

std::vector<bool> DivisionsFedBy(const LoopCode& loop, const std::vector<bool>& loads) {
  const auto divides = [](const LoopInstruction& i) { return i.Is(kDivides | kSquareRoots); };
  std::vector<bool> fed(loads.size());
  if (absl::c_none_of(loop.instructions, divides)) return fed;
  const std::vector<Effect> effects = Effects(loop);
  const Definitions definitions(loop, effects);
  std::vector<std::vector<uint32_t>> users(effects.size());
  for (uint32_t i = 0; i < effects.size(); ++i) {
    for (RegisterSet set = effects[i].reads; set != 0; set &= set - 1)
      for (uint32_t maker : definitions.Of(i, std::countr_zero(set)).from)
        users[maker].push_back(i);
  }
  // Forward: everything made, through registers, of one of the loads.
  std::vector<bool> made = loads;
  std::vector<uint32_t> work;
  for (uint32_t i = 0; i < made.size(); ++i)
    if (made[i]) work.push_back(i);
  while (!work.empty()) {
    const uint32_t at = work.back();
    work.pop_back();
    fed[at] = divides(loop.instructions[at]);
    for (uint32_t user : users[at]) {
      if (made[user]) continue;
      made[user] = true;
      work.push_back(user);
    }
  }
  return fed;
}

absl::Status ControlOperands(Work* work, uint32_t at, bool keep_access,
                             std::optional<uint32_t> slot) {
  const LoopInstruction& i = work->loop.instructions[at];
  const Operands operands = OperandsOf(i);
  std::vector<Encoded> codes;
  if (i.Accesses() && keep_access) {
    ASSIGN_OR_RETURN(Encoded load, EncodeLoad(i, i.destination, slot));
    codes.push_back(load);
  }
  ASSIGN_OR_RETURN(Encoded fill, EncodeFill(i, operands.dividend));
  codes.push_back(fill);
  ASSIGN_OR_RETURN(Encoded operate, EncodeControlled(i, operands.divisor));
  codes.push_back(operate);
  work->uses_block = true;
  return SetReplacement(work, at, std::move(codes));
}

}  // namespace perfd::agent
