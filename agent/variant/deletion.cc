// Deleted arithmetic (LS, NO_DIV, NO_SQRT, NO_RED) and deleted accesses (FP, GROUP, NO_STORE).
#include "absl/strings/match.h"
#include "agent/variant/encode.h"
#include "agent/variant/flow/edges.h"
#include "agent/variant/work.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

bool Writes(const LoopInstruction& i) {
  return i.destination >= 0 && (i.writes & Bit(i.destination)) != 0;
}

bool Reads(const LoopInstruction& i) {
  return i.destination >= 0 && (i.reads & Bit(i.destination)) != 0;
}

absl::Status Drop(Work* work, uint32_t at) {
  work->draft.slots[at].replacement = Delete(work->loop.instructions[at]);
  return absl::OkStatus();
}

absl::Status Zero(Work* work, uint32_t at) {
  const LoopInstruction& i = work->loop.instructions[at];
  ASSIGN_OR_RETURN(Encoded zero, EncodeZero(i, i.destination, !FlagsDead(*work, at)));
  return SetReplacement(work, at, {zero});
}

// The register that stands for memory: the other source, else one that adds no dependence.
int Substitute(const Work& work, uint32_t at) {
  const LoopInstruction& i = work.loop.instructions[at];
  const bool from_general = absl::StrContains(i.mnemonic, "cvtsi2s") ||
                            absl::StrContains(i.mnemonic, "cvtusi2s") ||
                            absl::StartsWith(i.mnemonic, "vpbroadcast");
  if (from_general && i.Is(kArithmetic)) return kStackPointer;
  const int other = OtherSource(i);
  if (other >= 0) return other;
  return InvariantVector(work, at);
}

// An operation on memory becomes one on registers.
absl::Status ToRegister(Work* work, uint32_t at) {
  const LoopInstruction& i = work->loop.instructions[at];
  const int substitute = Substitute(*work, at);
  if (substitute >= 0) {
    absl::StatusOr<Encoded> code = EncodeToRegister(i, substitute);
    if (code.ok()) return SetReplacement(work, at, {*code});
    return i.Is(kMergeMasked) || Reads(i) ? Drop(work, at) : Zero(work, at);
  }
  // Every register is written in the loop: clear the destination, then use it as source.
  ASSIGN_OR_RETURN(Encoded zero, EncodeZero(i, i.destination, true));
  ASSIGN_OR_RETURN(Encoded code, EncodeToRegister(i, i.destination));
  return SetReplacement(work, at, {zero, code});
}

absl::Status DeleteVectorLoad(Work* work, uint32_t at) {
  const LoopInstruction& i = work->loop.instructions[at];
  if (i.Is(kGathers)) return Zero(work, at);
  if (!Writes(i)) return i.Is(kArithmetic) ? ToRegister(work, at) : Drop(work, at);
  const bool operates = i.Is(kArithmetic) || OtherSource(i) >= 0;
  if (operates) return ToRegister(work, at);
  if (Reads(i)) return Drop(work, at);  // a load into a part of its destination
  return Zero(work, at);
}

absl::Status DeleteGeneralLoad(Work* work, uint32_t at) {
  const LoopInstruction& i = work->loop.instructions[at];
  if (!Writes(i)) return Drop(work, at);
  if (!Reads(i)) return Zero(work, at);
  absl::StatusOr<Encoded> code = EncodeToRegister(i, i.destination);
  return code.ok() ? SetReplacement(work, at, {*code}) : Drop(work, at);
}

}  // namespace

absl::Status DeleteArithmetic(Work* work, uint32_t at, std::optional<uint32_t> slot) {
  const LoopInstruction& i = work->loop.instructions[at];
  if (i.Accesses() && i.memory->writes) return absl::OkStatus();  // converts while it stores
  if (!i.Accesses()) {
    work->draft.slots[at].replacement = Delete(i);
    return absl::OkStatus();
  }
  const bool has_destination =
      i.destination >= 0 && (i.writes & Bit(i.destination)) != 0 && i.destination < kMaskRegisters;
  if (!has_destination && !slot) return AccessOnly(work, at);
  const int destination = has_destination ? i.destination : DeadVector(*work, at);
  if (destination < 0) return absl::OkStatus();
  absl::StatusOr<Encoded> load = EncodeLoad(i, destination, slot);
  if (!load.ok() && !slot) return AccessOnly(work, at);
  RETURN_IF_ERROR(load.status());
  work->uses_block = work->uses_block || slot.has_value();
  return SetReplacement(work, at, {*load});
}

absl::Status DeleteMemory(Work* work, uint32_t at) {
  const LoopInstruction& i = work->loop.instructions[at];
  if (i.Is(kLocked)) return Refuse(i, "a locked instruction cannot lose its memory operand");
  if (!i.Accesses() || i.memory->writes) return Drop(work, at);
  if (i.destination >= kMaskRegisters && !i.Is(kArithmetic)) return Zero(work, at);
  return i.Is(kVectorOp) ? DeleteVectorLoad(work, at) : DeleteGeneralLoad(work, at);
}

}  // namespace perfd::agent
