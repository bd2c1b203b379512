// DL1: every memory operand gets a line of its own in the thread block.
// Source: Bendifallah 2015, 4.2 (DL1); digest 4.4 (one slot per operand, index loads, pointer chases).
#include <algorithm>
#include <bit>
#include <utility>

#include "agent/variant/encode.h"
#include "agent/variant/flow/edges.h"
#include "agent/variant/gs_code.h"
#include "agent/variant/roles.h"
#include "agent/variant/thread_block.h"
#include "agent/variant/work.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

bool IsAccess(const LoopInstruction& i) {
  return i.Accesses() && !i.Is(kX87 | kStringOp);
}

// What makes a register's value, copies between registers looked through.
struct Makers {
  std::vector<uint32_t> instructions;
  RegisterSet outside = 0;  // registers whose value at the entry takes part
};

bool IsCopy(const LoopInstruction& i) {
  return i.mnemonic == "mov" && i.step.source >= 0 && i.step.by == 0 && !i.memory;
}

// Neighbours lie at different places of their lines, as elements of arrays do: of loads at the same place of different lines
// the cache serves two a cycle, of others three (docs/benchmarks/constants.md#kstep).
uint32_t PlaceInSlot(const MemoryOperand& operand, uint32_t number) {
  constexpr uint32_t kLine = 64, kStep = 16;
  const uint32_t bytes = std::max<uint32_t>({kStep, operand.bytes, operand.data_bytes});
  return bytes >= kLine ? 0 : number * std::bit_ceil(bytes) % kLine;
}

class Pinner {
 public:
  Pinner(Work* work, const std::vector<bool>& also_deletes)
      : work_(*work),
        loop_(work->loop),
        also_deletes_(also_deletes),
        definitions_(loop_, work->effects),
        pinned_(loop_.instructions.size()),
        chases_(loop_.instructions.size()) {}

  absl::Status Run() {
    RETURN_IF_ERROR(Choose());
    ChooseChases();
    KeepWhatUnpinnedNeed();
    if (!ChasesAgree()) {
      for (uint32_t i = 0; i < chases_.size(); ++i) {
        if (chases_[i]) pinned_[i] = false;
        chases_[i] = false;
      }
      KeepWhatUnpinnedNeed();
    }
    return Apply();
  }

 private:
  absl::Status Choose() {
    for (uint32_t i = 0; i < pinned_.size(); ++i) {
      const LoopInstruction& instruction = loop_.instructions[i];
      // A pinned line needs no prefetch, and a prefetch must not hold on to the loads that feed its address.
      if (instruction.Is(kPrefetches) && !Replaced(i))
        work_.draft.slots[i].replacement = Delete(instruction);
      if (!IsAccess(instruction) || loop_.roles[i].control || Replaced(i)) continue;
      if (instruction.Is(kLocked))
        return Refuse(instruction, "a locked instruction cannot have another memory operand");
      pinned_[i] = !instruction.memory->vector_index;
    }
    return absl::OkStatus();
  }

  bool Replaced(uint32_t i) const { return work_.draft.slots[i].replacement.has_value(); }

  Makers MakersOf(uint32_t at, int number) const {
    Makers makers;
    std::vector<std::pair<uint32_t, int>> work = {{at, number}};
    std::vector<bool> seen(pinned_.size());
    while (!work.empty()) {
      const auto [here, reg] = work.back();
      work.pop_back();
      const Definitions::Reach& reach = definitions_.Of(here, reg);
      if (reach.from_outside) makers.outside |= Bit(reg);
      for (uint32_t maker : reach.from) {
        if (seen[maker]) continue;
        seen[maker] = true;
        const LoopInstruction& i = loop_.instructions[maker];
        if (IsCopy(i)) {
          work.emplace_back(maker, i.step.source);
        } else {
          makers.instructions.push_back(maker);
        }
      }
    }
    return makers;
  }

  // The address of the access, or the part of it in `registers`, is made, through registers, of what the access loads.
  bool FeedsItself(uint32_t at) const {
    return FeedsItself(at, loop_.instructions[at].address_reads);
  }
  bool FeedsItself(uint32_t at, RegisterSet registers) const {
    std::vector<bool> seen(pinned_.size());
    std::vector<std::pair<uint32_t, RegisterSet>> work = {{at, registers}};
    while (!work.empty()) {
      auto [here, set] = work.back();
      work.pop_back();
      for (; set != 0; set &= set - 1) {
        for (uint32_t maker : definitions_.Of(here, std::countr_zero(set)).from) {
          if (maker == at) return true;
          if (seen[maker]) continue;
          seen[maker] = true;
          work.emplace_back(maker, work_.effects[maker].reads);
        }
      }
    }
    return false;
  }

  // The register that carries the chase from one load to the next; kNoRegister: none, or more than one.
  int BatchOf(uint32_t at) const {
    const MemoryOperand& m = *loop_.instructions[at].memory;
    const bool base = m.base >= 0 && FeedsItself(at, Bit(m.base));
    const bool index = m.index >= 0 && FeedsItself(at, Bit(m.index));
    if (base == index) return kNoRegister;
    return base ? m.base : m.index;
  }

  // A pointer: `mov disp(reg), reg`. It stays, and reads a slot that holds its own address.
  static bool FollowsPointer(const LoopInstruction& i) {
    return i.mnemonic == "mov" && i.memory->bytes == 8 && i.memory->index == kNoRegister;
  }

  // An index: `mov disp(base,reg,scale), reg`, also of 4 bytes and with extension. Without the base it reads a slot that
  // holds zero: the next index is zero again, of whatever scale, and still every load waits for the one before.
  static bool FollowsIndex(const LoopInstruction& i) {
    const bool extends = i.mnemonic == "movsxd" || i.mnemonic == "movsx" || i.mnemonic == "movzx";
    return (extends || i.mnemonic == "mov") && i.destination_bytes >= 4 && !FollowsPointer(i);
  }

  bool CouldChase(uint32_t at) const {
    const LoopInstruction& i = loop_.instructions[at];
    const bool loads = i.memory->reads && !i.memory->writes && i.destination >= 0 &&
                       i.destination < kVectorRegisters && !i.memory->thread_local_segment;
    const int batch = loads ? BatchOf(at) : kNoRegister;
    return batch != kNoRegister && batch != kStackPointer && (FollowsPointer(i) || FollowsIndex(i));
  }

  // Loads that feed their own address either chase a pointer or an index in the simplest way or stay as they are. A chase in a loop
  // inside begins anew in each pass around it, and the preparation runs once.
  void ChooseChases() {
    for (uint32_t i = 0; i < pinned_.size(); ++i) {
      if (!pinned_[i] || !loop_.roles[i].address || !FeedsItself(i)) continue;
      chases_[i] = loop_.inner.empty() && CouldChase(i);
      pinned_[i] = chases_[i];
    }
  }

  // All of one kind, each fed by chases alone; pointers with one displacement, because they share the slot.
  bool ChasesAgree() {
    std::optional<int64_t> displacement;
    std::optional<bool> pointers;
    for (uint32_t i = 0; i < chases_.size(); ++i) {
      if (!chases_[i]) continue;
      const LoopInstruction& chase = loop_.instructions[i];
      const bool pointer = FollowsPointer(chase);
      if (pointers.value_or(pointer) != pointer) return false;
      pointers = pointer;
      const int64_t at = pointer ? chase.memory->displacement : 0;
      if (displacement.value_or(at) != at) return false;
      displacement = at;
      const Makers makers = MakersOf(i, BatchOf(i));
      for (uint32_t maker : makers.instructions)
        if (!chases_[maker]) return false;
      chase_starts_ |= makers.outside;
    }
    return true;
  }

  // Loads in the address slice of an access that stays where it is, and stores that may write what they read.
  void KeepWhatUnpinnedNeed() {
    bool again = true;
    while (again) {
      again = false;
      std::vector<uint32_t> seeds;
      for (uint32_t i = 0; i < pinned_.size(); ++i) {
        const LoopInstruction& instruction = loop_.instructions[i];
        const bool stays = instruction.address_reads != 0 && !pinned_[i] && !Replaced(i);
        for (RegisterSet set = stays ? instruction.address_reads : 0; set != 0; set &= set - 1)
          for (uint32_t maker : definitions_.Of(i, std::countr_zero(set)).from)
            seeds.push_back(maker);
      }
      const Slice needed = BackwardSlice(loop_, seeds);
      work_.pairs.taken_apart = needed.taken_apart;
      for (uint32_t i = 0; i < pinned_.size(); ++i) {
        if (!needed.in[i] || !pinned_[i]) continue;
        pinned_[i] = chases_[i] = false;
        again = true;
      }
    }
  }

  // Loads and stores never share a slot; when there are more operands than slots, loads share with loads.
  uint32_t SlotFor(const LoopInstruction& i) {
    const uint32_t stores = std::min<uint32_t>(store_slots_, kSlotCount / 2);
    const uint32_t number = i.memory->writes ? next_store_++ % std::max(1u, stores)
                                             : stores + next_load_++ % (kSlotCount - stores);
    return kBlockSlots + number * kSlotBytes + PlaceInSlot(*i.memory, number);
  }

  absl::Status Apply() {
    for (uint32_t i = 0; i < pinned_.size(); ++i)
      store_slots_ += pinned_[i] && loop_.instructions[i].memory->writes ? 1 : 0;
    std::optional<uint32_t> chase_slot;
    for (uint32_t i = 0; i < pinned_.size(); ++i) {
      if (!pinned_[i]) continue;
      if (chases_[i]) {
        if (!chase_slot) chase_slot = SlotFor(loop_.instructions[i]);
        RETURN_IF_ERROR(PinChase(i, *chase_slot));
        continue;
      }
      RETURN_IF_ERROR(Pin(i));
    }
    if (chase_slot) StartChases(*chase_slot);
    return absl::OkStatus();
  }

  absl::Status Pin(uint32_t at) {
    const LoopInstruction& i = loop_.instructions[at];
    const uint32_t slot = SlotFor(i);
    ++work_.pinned;
    work_.uses_block = true;
    if (work_.controlled[at] && !also_deletes_[at]) return ControlOperands(&work_, at, true, slot);
    if (also_deletes_[at]) return DeleteArithmetic(&work_, at, slot);
    ASSIGN_OR_RETURN(Encoded code, EncodeToBlock(i, slot));
    return SetReplacement(&work_, at, {code});
  }

  absl::Status PinChase(uint32_t at, uint32_t slot) {
    const LoopInstruction& i = loop_.instructions[at];
    ++work_.pinned;
    if (FollowsPointer(i)) return absl::OkStatus();
    ASSIGN_OR_RETURN(Encoded code, EncodeToBlock(i, slot, BatchOf(at)));
    return SetReplacement(&work_, at, {code});
  }

  // The registers that the first load reads: the slot's content, which is its own address or zero (as all slots are).
  void StartChases(uint32_t word) {
    int64_t displacement = 0;
    bool pointers = false;
    for (uint32_t i = 0; i < chases_.size(); ++i) {
      if (!chases_[i]) continue;
      displacement = loop_.instructions[i].memory->displacement;
      pointers = FollowsPointer(loop_.instructions[i]);
    }
    GsCode code;
    for (RegisterSet set = chase_starts_; set != 0; set &= set - 1)
      code.Load(std::countr_zero(set), word);
    work_.draft.preparation.push_back(PieceOf(code.Release()));
    if (pointers) work_.self_pointers.push_back({word, static_cast<int64_t>(word) - displacement});
    work_.uses_block = true;
  }

  Work& work_;
  const LoopCode& loop_;
  const std::vector<bool>& also_deletes_;
  const Definitions definitions_;
  std::vector<bool> pinned_;
  std::vector<bool> chases_;
  RegisterSet chase_starts_ = 0;
  uint32_t store_slots_ = 0;
  uint32_t next_store_ = 0;
  uint32_t next_load_ = 0;
};

}  // namespace

absl::Status PinAll(Work* work, const std::vector<bool>& also_deletes) {
  return Pinner(work, also_deletes).Run();
}

}  // namespace perfd::agent
