#include "agent/variant/flow/leaf_frame.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/variant/decode.h"
#include "agent/variant/encode.h"
#include "agent/variant/rewrite.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kWord = 8;

bool UsesStackPointer(const LoopInstruction& i) {
  return ((i.reads | i.writes | i.address_reads) & Bit(kStackPointer)) != 0;
}

bool MovesWord(const LoopInstruction& i) {
  return !i.memory && i.destination_bytes == kWord && i.destination >= 0 &&
         i.destination < kVectorRegisters && i.destination != kStackPointer;
}

bool OnlyMovesStackPointer(const LoopInstruction& i) {
  return i.destination == kStackPointer && i.step.source == kStackPointer;
}

// What a register or a word of the stack holds: nothing of the stack pointer, or so many bytes more than the loop's, or some number of
// bytes that code does not tell.
using Origin = std::optional<int64_t>;
constexpr int64_t kSomewhere = INT64_MIN;
constexpr size_t kMostSaved = 32;  // addresses that are kept on the stack at a time

Origin Joined(const Origin& a, const Origin& b) {
  return a == b ? a : Origin(kSomewhere);
}

struct StackState {
  std::array<Origin, kVectorRegisters> registers;
  std::map<int64_t, int64_t> saved;  // addresses of the stack that are kept on it, by place

  bool operator==(const StackState&) const = default;
};

StackState Joined(const StackState& a, const StackState& b) {
  StackState both;
  for (size_t reg = 0; reg < both.registers.size(); ++reg)
    both.registers[reg] = Joined(a.registers[reg], b.registers[reg]);
  for (const StackState* state : {&a, &b}) {
    for (const auto& [place, origin] : state->saved) {
      const bool same = a.saved.contains(place) && b.saved.contains(place) &&
                        a.saved.at(place) == b.saved.at(place);
      both.saved[place] = same ? origin : kSomewhere;
    }
  }
  return both;
}

// The register that an instruction of the one-byte map takes from the middle of its ModRM byte, as stores and `op %reg, memory` do.
// Source: Intel SDM vol. 2, 2.1.3, appendix A.
std::optional<int> SecondRegister(const LoopInstruction& i) {
  const std::span<const uint8_t> code = i.code();
  size_t at = 0;
  uint8_t rex = 0;
  for (; at + 1 < code.size(); ++at) {
    const bool prefix = code[at] == 0x66 || code[at] == 0x67 || code[at] == 0xf0 ||
                        code[at] == 0xf2 || code[at] == 0xf3 || (code[at] & 0xe7) == 0x26 ||
                        (code[at] & 0xfe) == 0x64;
    if ((code[at] & 0xf0) == 0x40) {
      rex = code[at];
    } else if (!prefix) {
      break;
    }
  }
  if (at + 1 >= code.size()) return std::nullopt;
  const uint8_t opcode = code[at];
  const bool with_register =
      (opcode < 0x40 && (opcode & 7) < 4) || (opcode >= 0x84 && opcode <= 0x89);
  if (!with_register) return std::nullopt;
  const int number = (code[at + 1] >> 3) & 7;
  const bool high_byte = (opcode & 1) == 0 && rex == 0 && number >= 4;  // AH, CH, DH, BH
  return high_byte ? number - 4 : number | ((rex & 4) != 0 ? 8 : 0);
}

class StackWalk {
 public:
  StackWalk(const std::map<uint64_t, LoopInstruction>& code,
            const std::map<uint64_t, std::vector<int64_t>>& returns)
      : code_(code), returns_(returns) {}

  std::vector<uint64_t> Run(uint64_t entry) {
    StackState start;
    start.registers[kStackPointer] = 0;
    Reach(entry, start);
    while (!work_.empty()) {
      const uint64_t at = *work_.begin();
      work_.erase(work_.begin());
      const LoopInstruction& i = code_.at(at);
      StackState state = before_.at(at);
      if (beyond_.contains(at) || !Holds(i, state)) {
        beyond_.insert(at);
        continue;
      }
      Step(i, &state);
      if (i.flow == LoopFlow::kBranch || i.flow == LoopFlow::kJump) Reach(i.target, state);
      if (i.flow == LoopFlow::kPlain || i.flow == LoopFlow::kBranch) Reach(i.end(), state);
    }
    return {beyond_.begin(), beyond_.end()};
  }

 private:
  void Reach(uint64_t at, const StackState& state) {
    if (!code_.contains(at)) return;
    const auto [before, first] = before_.try_emplace(at, state);
    const StackState joined = first ? state : Joined(before->second, state);
    if (!first && joined == before->second) return;
    before->second = joined;
    work_.insert(at);
  }

  static Origin OriginOf(int reg, const StackState& state) {
    if (reg < 0 || reg >= kVectorRegisters) return std::nullopt;
    return state.registers[static_cast<size_t>(reg)];
  }

  // Where its memory operand lies on the stack; none: elsewhere, as far as the stack pointer tells.
  static Origin PlaceOf(const LoopInstruction& i, const StackState& state) {
    const MemoryOperand& m = *i.memory;
    const Origin base = OriginOf(m.base, state);
    const bool indexed = m.index != kNoRegister;
    const Origin index = m.vector_index ? Origin() : OriginOf(m.index, state);
    if (!base && !index) return std::nullopt;
    // A bit of a register's number may lie anywhere. Source: Intel SDM vol. 2, BT.
    const bool by_bit = absl::StartsWith(i.mnemonic, "bt");
    if (indexed || by_bit || base == kSomewhere) return kSomewhere;
    return *base + m.displacement;
  }

  // Registers with addresses of the stack that it uses other than to form an address.
  static RegisterSet ValuesOfStack(const LoopInstruction& i, const StackState& state) {
    RegisterSet values = i.reads & ~i.address_reads;
    if (const std::optional<int> second = SecondRegister(i)) values |= i.reads & Bit(*second);
    RegisterSet found = 0;
    for (int reg = 0; reg < kVectorRegisters; ++reg)
      if ((values & Bit(reg)) != 0 && OriginOf(reg, state)) found |= Bit(reg);
    return found;
  }

  static bool SavesWord(const LoopInstruction& i) {
    return i.mnemonic == "mov" && i.Accesses() && i.memory->writes && i.memory->bytes == kWord;
  }
  static bool RestoresWord(const LoopInstruction& i) {
    return i.mnemonic == "mov" && i.Accesses() && i.memory->reads && i.memory->bytes == kWord &&
           i.destination >= 0 && i.destination < kVectorRegisters;
  }

  bool IsHeld(uint64_t at, int64_t low, int64_t high) const {
    const auto meets = [low, high](int64_t depth) {
      return low < kReturnAddressBytes - depth && -depth < high;
    };
    return low >= -kRedZone && absl::c_none_of(returns_.at(at), meets);
  }

  bool Holds(const LoopInstruction& i, const StackState& state) const {
    const bool implicit = i.Is(kStringOp) && !Apart(i.address_reads, state);
    const Origin place = i.Accesses() ? PlaceOf(i, state) : std::nullopt;
    if (implicit || place == kSomewhere) return false;
    const bool on_stack = place.has_value();
    const int64_t low = place.value_or(0);
    if (on_stack && !IsHeld(i.address, low, low + i.memory->bytes)) return false;
    // An address of the stack that is kept elsewhere, or in a vector register, is lost sight of.
    const RegisterSet values = ValuesOfStack(i, state);
    const bool kept = (i.Accesses() && i.memory->writes) || i.Is(kStringOp);
    const bool known = SavesWord(i) && on_stack && state.saved.size() < kMostSaved;
    if (values != 0 && kept && !known) return false;
    if (values != 0 && (i.writes & ~(kAllGeneral | kStatusFlags)) != 0) return false;
    // So is what is made of a part of such an address, or of one in memory.
    return !on_stack || !i.memory->reads || RestoresWord(i) || !Meets(low, i.memory->bytes, state);
  }

  static bool Apart(RegisterSet registers, const StackState& state) {
    for (int reg = 0; reg < kVectorRegisters; ++reg)
      if ((registers & Bit(reg)) != 0 && OriginOf(reg, state)) return false;
    return true;
  }

  static bool Meets(int64_t low, int64_t bytes, const StackState& state) {
    return std::any_of(state.saved.begin(), state.saved.end(), [low, bytes](const auto& word) {
      return word.first < low + bytes && low < word.first + kWord;
    });
  }

  static void Step(const LoopInstruction& i, StackState* state) {
    const StackState old = *state;
    const Origin place = i.memory ? PlaceOf(i, old) : std::nullopt;
    const bool on_stack = i.Accesses() && place.has_value() && *place != kSomewhere;
    const int64_t low = place.value_or(0);
    const bool derived = ValuesOfStack(i, old) != 0 || (place && !i.Accesses());
    for (int reg = 0; reg < kVectorRegisters; ++reg) {
      if (reg == kStackPointer || (i.writes & Bit(reg)) == 0) continue;
      const bool partly = (i.kills & Bit(reg)) == 0 && OriginOf(reg, old);
      state->registers[static_cast<size_t>(reg)] =
          derived || partly ? Origin(kSomewhere) : Origin();
    }
    if (i.destination >= 0 && i.destination < kVectorRegisters && i.destination != kStackPointer) {
      Origin& made = state->registers[static_cast<size_t>(i.destination)];
      const Origin source = OriginOf(i.step.source, old);
      if (source && !i.Accesses()) made = *source == kSomewhere ? kSomewhere : *source + i.step.by;
      if (on_stack && RestoresWord(i) && Meets(low, kWord, old))
        made = old.saved.contains(low) ? old.saved.at(low) : kSomewhere;
      // Its own address may be among what it computes on.
      const bool itself = i.Accesses() && (i.address_reads & Bit(i.destination)) != 0 &&
                          OriginOf(i.destination, old).has_value();
      if (itself && !absl::StartsWith(i.mnemonic, "mov")) made = kSomewhere;
    }
    if (on_stack && i.memory->writes) Save(i, low, old, state);
  }

  static void Save(const LoopInstruction& i, int64_t low, const StackState& old,
                   StackState* state) {
    const auto meets = [&](const auto& word) {
      return word.first < low + i.memory->bytes && low < word.first + kWord;
    };
    if (i.Is(kMaskedMemory)) {
      for (auto& word : state->saved)
        if (meets(word)) word.second = kSomewhere;
    } else {
      std::erase_if(state->saved, meets);
    }
    const std::optional<int> kept = SavesWord(i) ? SecondRegister(i) : std::nullopt;
    if (kept && OriginOf(*kept, old)) state->saved[low] = *OriginOf(*kept, old);
  }

  const std::map<uint64_t, LoopInstruction>& code_;
  const std::map<uint64_t, std::vector<int64_t>>& returns_;
  std::map<uint64_t, StackState> before_;
  std::set<uint64_t> work_;
  std::set<uint64_t> beyond_;
};

}  // namespace

std::optional<int64_t> Lowers(const LoopInstruction& i) {
  if ((i.writes & Bit(kStackPointer)) == 0) return 0;
  if (i.mnemonic == "push" && MovesWord(i)) return kWord;
  if (i.mnemonic == "pop" && MovesWord(i)) return -kWord;
  if (OnlyMovesStackPointer(i)) return -i.step.by;
  return std::nullopt;
}

absl::StatusOr<LoopInstruction> InFrame(const LoopInstruction& i, int64_t depth, LoadBias bias) {
  if (!UsesStackPointer(i)) return i;
  if (!Lowers(i)) return absl::FailedPreconditionError("where it moves the stack pointer to");
  std::vector<uint8_t> bytes;
  if (OnlyMovesStackPointer(i)) {
    AppendNops(1, &bytes);
  } else {
    ASSIGN_OR_RETURN(const Encoded code, EncodeInFrame(i, depth));
    bytes = code.bytes;
  }
  std::optional<LoopInstruction> moved = DecodeLoopInstruction(bytes, i.address, bias);
  if (!moved) return absl::InternalError(absl::StrCat("`", i.text, "` does not decode in a frame"));
  moved->bytes = i.bytes;
  moved->length = i.length;
  moved->text = i.text;
  moved->in_copies = std::move(bytes);
  return *std::move(moved);
}

std::vector<uint64_t> TouchBeyondFrame(const std::map<uint64_t, LoopInstruction>& code,
                                       uint64_t entry,
                                       const std::map<uint64_t, std::vector<int64_t>>& returns) {
  return StackWalk(code, returns).Run(entry);
}

}  // namespace perfd::agent
