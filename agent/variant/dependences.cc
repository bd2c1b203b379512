// A deletion must not make an instruction wait for the iteration before when it did not before.
// Source: Bendifallah 2015, 6.2 (tables 6.1-6.3).
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/variant/encode.h"
#include "agent/variant/flow/edges.h"
#include "agent/variant/work.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int kMaxRounds = 4;

// Deleted instructions that wrote `number` clear it instead.
absl::Status ClearInstead(Work* work, int number, bool* cleared) {
  for (uint32_t i = 0; i < work->draft.slots.size(); ++i) {
    std::optional<Replacement>& r = work->draft.slots[i].replacement;
    const bool wrote = (work->effects[i].kills & Bit(number)) != 0;
    if (!r || !wrote || !r->effects.empty() || number >= kCarryFlag) continue;
    ASSIGN_OR_RETURN(Encoded zero,
                     EncodeZero(work->loop.instructions[i], number, !FlagsDead(*work, i)));
    RETURN_IF_ERROR(SetReplacement(work, i, {zero}));
    *cleared = true;
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Effect> DraftEffects(const Work& work) {
  std::vector<Effect> effects = work.effects;
  for (size_t i = 0; i < effects.size(); ++i) {
    const std::optional<Replacement>& r = work.draft.slots[i].replacement;
    if (r) effects[i] = EffectOf(r->effects);
  }
  return effects;
}

absl::Status RemoveAddedDependences(Work* work) {
  for (int round = 0;; ++round) {
    const std::vector<CarriedUse> added = AddedRecurrences(work->loop, DraftEffects(*work));
    if (added.empty()) return absl::OkStatus();
    bool cleared = false;
    for (const CarriedUse& use : added) RETURN_IF_ERROR(ClearInstead(work, use.number, &cleared));
    if (cleared && round < kMaxRounds) continue;
    return Refuse(work->loop.instructions[added[0].instruction],
                  "would come to depend on the iteration before");
  }
}

}  // namespace perfd::agent
