#include "agent/variant/work.h"

#include <utility>

#include "agent/variant/encode.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

int FirstOutside(RegisterSet taken, int first, int count) {
  for (int r = first; r < first + count; ++r)
    if ((taken & Bit(r)) == 0) return r;
  return kNoRegister;
}

// Registers 16 to 31 exist in EVEX forms only.
int VectorCount(const LoopInstruction& i) {
  return i.Is(kEvex) ? 32 : 16;
}

// The first of several codes that could be made.
absl::Status SetFirst(Work* work, uint32_t at, std::vector<absl::StatusOr<Encoded>> choices) {
  for (absl::StatusOr<Encoded>& code : choices)
    if (code.ok()) return SetReplacement(work, at, {*std::move(code)});
  return choices.back().status();
}

}  // namespace

Work StartWork(const LoopCode& loop, const VariantName& name, const CopyTarget& target) {
  Work work{loop, name, target, {}, {}, 0, {}, {}, {}, 0, false, {}};
  work.effects = Effects(loop);
  const std::vector<RegisterSet> live = LiveBefore(loop, work.effects, 0);
  work.live_after.assign(live.size(), 0);
  for (size_t i = 0; i < live.size(); ++i)
    for (uint32_t to : loop.next[i]) work.live_after[i] |= live[to];
  for (size_t i = 0; i < loop.live.beyond.size(); ++i) work.live_after[i] |= loop.live.beyond[i];
  for (const Effect& e : work.effects) work.written |= e.writes;
  work.draft.slots.resize(loop.instructions.size());
  work.controlled.assign(loop.instructions.size(), false);
  return work;
}

absl::Status SetReplacement(Work* work, uint32_t at, std::vector<Encoded> codes) {
  ASSIGN_OR_RETURN(Replacement r, Replace(work->loop.instructions[at], std::move(codes)));
  work->draft.slots[at].replacement = std::move(r);
  return absl::OkStatus();
}

int DeadVector(const Work& work, uint32_t at) {
  return FirstOutside(work.live_after[at], kVectorRegisters,
                      VectorCount(work.loop.instructions[at]));
}

int DeadGeneral(const Work& work, uint32_t at) {
  return FirstOutside(work.live_after[at] | Bit(kStackPointer), kGeneralRegisters, 16);
}

bool FlagsDead(const Work& work, uint32_t at) {
  return (work.live_after[at] & kStatusFlags) == 0;
}

int InvariantVector(const Work& work, uint32_t at) {
  return FirstOutside(work.written, kVectorRegisters, VectorCount(work.loop.instructions[at]));
}

absl::Status AccessOnly(Work* work, uint32_t at) {
  const LoopInstruction& i = work->loop.instructions[at];
  std::vector<absl::StatusOr<Encoded>> choices;
  const bool any_lane =
      i.Is(kMaskedMemory) && !i.Is(kEvex);  // its mask is a vector: a plain load may fault
  const bool narrow = i.memory->bytes <= 8 && !i.Is(kMaskedMemory);
  const int vector = DeadVector(*work, at);
  const int general = DeadGeneral(*work, at);
  if (i.Is(kVectorOp) && !any_lane && vector >= 0) choices.push_back(EncodeLoad(i, vector));
  if (narrow && general >= 0) choices.push_back(EncodeLoad(i, general));
  if (narrow && FlagsDead(*work, at)) choices.push_back(EncodeCompare(i));
  choices.push_back(EncodePrefetch(i));
  return SetFirst(work, at, std::move(choices));
}

}  // namespace perfd::agent
