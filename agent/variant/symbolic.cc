#include "agent/variant/symbolic.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "agent/variant/flow/edges.h"
#include "agent/variant/flow/leaf_calls.h"

namespace perfd::agent {
namespace {

// Displacements from here on are taken for the address of a static array (non-PIC code), not for a field or a neighbour.
// Source: System V ABI AMD64, 3.3.2: text and data of executables start at 0x400000.
constexpr int64_t kStaticDisplacement = 0x400000;
// Static accesses farther apart than this are different arrays.
constexpr uint64_t kStaticGap = 256;

// Roots: header registers, then one per (instruction, register) written, then one per (instruction, register) joined.
uint32_t MadeRoot(uint32_t instruction, int reg) {
  return 16 + instruction * 32 + static_cast<uint32_t>(reg);
}
uint32_t JoinRoot(uint32_t instruction, int reg) {
  return 16 + instruction * 32 + 16 + static_cast<uint32_t>(reg);
}

SymbolicState Header() {
  SymbolicState state;
  for (uint32_t r = 0; r < state.size(); ++r) state[r].root = r;
  return state;
}

void Step(const LoopInstruction& i, uint32_t at, SymbolicState* state) {
  const SymbolicState before = *state;
  for (RegisterSet set = i.writes & kAllGeneral; set != 0; set &= set - 1) {
    const int reg = std::countr_zero(set);
    (*state)[static_cast<size_t>(reg)] = {MadeRoot(at, reg), 0};
  }
  if (i.step.source < 0 || i.step.source >= kVectorRegisters) return;
  SymbolicValue value = before[static_cast<size_t>(i.step.source)];
  value.offset += static_cast<uint64_t>(i.step.by);
  (*state)[static_cast<size_t>(i.destination)] = value;
}

void Join(const SymbolicState& incoming, uint32_t at, SymbolicState* state) {
  for (int r = 0; r < 16; ++r) {
    const auto n = static_cast<size_t>(r);
    if (!((*state)[n] == incoming[n])) (*state)[n] = {JoinRoot(at, r), 0};
  }
}

// By header of an inner loop, the general registers that it writes: in each of its passes they may hold something else.
std::map<uint32_t, RegisterSet> ChangingInside(const LoopCode& loop) {
  std::map<uint32_t, RegisterSet> changing;
  for (const InnerLoop& inner : loop.inner) {
    RegisterSet& written = changing[inner.header];
    for (size_t n = 0; n < inner.in.size(); ++n)
      if (inner.in[n]) written |= loop.instructions[n].writes & kAllGeneral;
  }
  return changing;
}

void Forget(RegisterSet set, uint32_t at, SymbolicState* state) {
  for (; set != 0; set &= set - 1) {
    const int reg = std::countr_zero(set);
    (*state)[static_cast<size_t>(reg)] = {JoinRoot(at, reg), 0};
  }
}

struct GroupKey {
  uint32_t base = 0;   // root + 1; 0: none
  uint32_t index = 0;  // general: root + 1; vector: 1 + 2^31 + number
  int scale = 1;
  bool thread_local_segment = false;
  uint64_t target = 0;  // of static operands

  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the operator for one of pointers
  auto operator<=>(const GroupKey&) const = default;
};

struct Place {
  GroupKey key;
  uint64_t offset = 0;
};

Place PlaceOf(const MemoryOperand& m, const SymbolicState& state) {
  Place target;
  target.key.thread_local_segment = m.thread_local_segment;
  target.offset = static_cast<uint64_t>(m.displacement);
  if (m.base == kInstructionPointer) {
    target.offset = 0;
    target.key.target = m.target;
    return target;
  }
  if (m.base >= 0) {
    const SymbolicValue& v = state[static_cast<size_t>(m.base)];
    target.key.base = v.root + 1;
    target.offset += v.offset;
  }
  if (m.index < 0) return target;
  target.key.scale = m.scale;
  if (m.vector_index) {
    target.key.index = (1u << 31) + static_cast<uint32_t>(m.index);
    return target;
  }
  const SymbolicValue& v = state[static_cast<size_t>(m.index)];
  target.key.index = v.root + 1;
  target.offset += v.offset * static_cast<uint64_t>(m.scale);
  return target;
}

bool IsStatic(const MemoryOperand& m) {
  return m.base != kInstructionPointer && (m.base < 0 || m.displacement >= kStaticDisplacement);
}

// Static operands with one key are split where their offsets lie far apart; the place becomes part of the key.
void SplitStatic(const LoopCode& loop, std::map<uint32_t, Place>* places) {
  std::vector<uint32_t> order;
  for (const auto& [at, target] : *places)
    if (IsStatic(*loop.instructions[at].memory)) order.push_back(at);
  std::sort(order.begin(), order.end(), [places](uint32_t a, uint32_t b) {
    const Place& x = places->at(a);
    const Place& y = places->at(b);
    return std::tie(x.key, x.offset) < std::tie(y.key, y.offset);
  });
  GroupKey key;
  uint64_t start = 0;
  uint64_t last = 0;
  bool open = false;
  for (uint32_t at : order) {
    Place& target = places->at(at);
    if (!open || target.key != key || target.offset - last > kStaticGap) start = target.offset;
    key = target.key;
    last = target.offset;
    open = true;
    target.key.target = start + 1;
  }
}

bool Overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) {
  return b - a < a_bytes || a - b < b_bytes;
}

bool OnStack(const MemoryOperand& m) {
  return m.base == kStackPointer && m.index == kNoRegister;
}

}  // namespace

std::vector<SymbolicState> SymbolicStates(const LoopCode& loop) {
  std::vector<SymbolicState> before(loop.instructions.size(), Header());
  std::vector<bool> reached(loop.instructions.size());
  std::vector<bool> done(loop.instructions.size());
  const std::map<uint32_t, RegisterSet> changing = ChangingInside(loop);
  reached[loop.entry] = true;
  for (uint32_t at : ForwardOrder(loop)) {
    if (const auto header = changing.find(at); header != changing.end())
      Forget(header->second, at, &before[at]);
    SymbolicState state = before[at];
    Step(loop.instructions[at], at, &state);
    done[at] = true;
    for (uint32_t to : loop.next[at]) {
      if (to == loop.entry || done[to]) continue;  // another pass begins
      if (reached[to]) {
        Join(state, to, &before[to]);
      } else {
        before[to] = state;
      }
      reached[to] = true;
    }
  }
  return before;
}

void AssignGroups(LoopCode* loop) {
  const std::vector<SymbolicState> states = SymbolicStates(*loop);
  std::map<uint32_t, Place> places;
  for (uint32_t i = 0; i < loop->instructions.size(); ++i) {
    const LoopInstruction& instruction = loop->instructions[i];
    if (instruction.Accesses()) places[i] = PlaceOf(*instruction.memory, states[i]);
  }
  SplitStatic(*loop, &places);
  std::map<GroupKey, int32_t> numbers;
  for (const auto& [at, target] : places) {
    const auto number = static_cast<int32_t>(numbers.size());
    Role& role = loop->roles[at];
    role.group = numbers.emplace(target.key, number).first->second;
    role.offset = target.offset;
  }
  loop->groups = static_cast<int32_t>(numbers.size());
}

Aliases::Aliases(const LoopCode& loop) : loop_(loop) {
  for (const LoopInstruction& i : loop.instructions) written_ |= i.writes;
}

bool Aliases::IsInvariant(const MemoryOperand& m) const {
  RegisterSet used = 0;
  if (m.base >= 0) used |= Bit(m.base);
  if (m.index >= 0) used |= Bit(m.index);
  return !m.vector_index && (used & written_) == 0;
}

bool Aliases::AreApart(uint32_t store, uint32_t load) const {
  const MemoryOperand& to = *loop_.instructions[store].memory;
  const MemoryOperand& from = *loop_.instructions[load].memory;
  return !Overlap(loop_.roles[store].offset, to.bytes, loop_.roles[load].offset, from.bytes);
}

bool Aliases::SamePlace(uint32_t store, uint32_t load) const {
  const LoopInstruction& s = loop_.instructions[store];
  const LoopInstruction& l = loop_.instructions[load];
  return s.memory && l.memory && loop_.roles[store].group == loop_.roles[load].group &&
         !AreApart(store, load);
}

bool Aliases::SameOperand(uint32_t store, uint32_t load) const {
  const std::optional<MemoryOperand>& to = loop_.instructions[store].memory;
  const std::optional<MemoryOperand>& from = loop_.instructions[load].memory;
  return to && from && loop_.roles[store].group == loop_.roles[load].group && IsInvariant(*to) &&
         IsInvariant(*from) && !AreApart(store, load);
}

bool Aliases::MayAlias(uint32_t store, uint32_t load) const {
  const LoopInstruction& s = loop_.instructions[store];
  const LoopInstruction& l = loop_.instructions[load];
  if (ReadsConstant(loop_, l)) return false;
  // x87 and MMX instructions without a memory operand that writes store nothing.
  if (s.Is(kX87) && !s.Is(kStores | kStringOp)) return false;
  // What a callee may write is not the frame of its caller.
  if (s.flow == LoopFlow::kCall) return !(l.memory && OnStack(*l.memory));
  if (!s.memory || !l.memory || s.Is(kStringOp) || l.Is(kStringOp)) return true;
  const MemoryOperand& to = *s.memory;
  const MemoryOperand& from = *l.memory;
  if (!IsInvariant(to) || !IsInvariant(from)) return true;
  const bool both_named = to.base == kInstructionPointer && from.base == kInstructionPointer;
  if (both_named) return Overlap(to.target, to.bytes, from.target, from.bytes);
  if (loop_.roles[store].group == loop_.roles[load].group) return !AreApart(store, load);
  const bool apart = (OnStack(to) && from.base == kInstructionPointer) ||
                     (OnStack(from) && to.base == kInstructionPointer);
  return !apart;
}

}  // namespace perfd::agent
