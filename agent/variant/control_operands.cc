// Operand control: division and square root take a time that depends on their operands.
// Source: Bendifallah 2015, 6.3 (REF(V2) and FP(V2) load the same constants).
#include <algorithm>
#include <bit>
#include <utility>

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

std::vector<bool> FedByLoads(const LoopCode& loop, const std::vector<bool>& taken_loads) {
  const std::vector<Effect> effects = Effects(loop);
  const Definitions definitions(loop, effects);
  std::vector<std::vector<uint32_t>> makers(effects.size());
  for (uint32_t i = 0; i < effects.size(); ++i) {
    for (RegisterSet set = effects[i].reads; set != 0; set &= set - 1) {
      const Definitions::Reach& reach = definitions.Of(i, std::countr_zero(set));
      makers[i].insert(makers[i].end(), reach.from.begin(), reach.from.end());
    }
  }
  // Forward: everything made, through registers, of a taken load.
  std::vector<bool> fed = taken_loads;
  bool again = true;
  while (again) {
    again = false;
    for (uint32_t i = 0; i < fed.size(); ++i) {
      if (fed[i]) continue;
      fed[i] = std::any_of(makers[i].begin(), makers[i].end(),
                           [&fed](uint32_t maker) { return fed[maker]; });
      again = again || fed[i];
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
