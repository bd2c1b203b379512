#include "agent/variant/flow/dataflow.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "agent/variant/flow/edges.h"

namespace perfd::agent {
namespace {

// Carries registers from where they are written to the instructions that read them, as far as they are live: what that takes is the
// length of their live ranges.
class LiveRanges {
 public:
  LiveRanges(const LoopCode& loop, std::span<const Effect> effects)
      : loop_(loop),
        effects_(effects),
        live_(LiveBefore(loop, effects, 0)),
        reached_(effects.size()) {}

  // Calls use(at, number) once for each instruction and register of `registers` that it may read as they are before `first`.
  template <typename Use>
  void Follow(std::span<const uint32_t> first, RegisterSet registers, Use use) {
    Reach(first, registers, use);
    while (!work_.empty()) {
      const auto [at, passed] = work_.back();
      work_.pop_back();
      Reach(loop_.next[at], passed, use);
    }
    for (const uint32_t at : touched_) reached_[at] = 0;
    touched_.clear();
  }

 private:
  template <typename Use>
  void Reach(std::span<const uint32_t> places, RegisterSet registers, Use use) {
    for (const uint32_t at : places) {
      const RegisterSet fresh = registers & live_[at] & ~reached_[at];
      if (fresh == 0) continue;
      if (reached_[at] == 0) touched_.push_back(at);
      reached_[at] |= fresh;
      for (RegisterSet set = fresh & effects_[at].reads; set != 0; set &= set - 1)
        use(at, std::countr_zero(set));
      work_.emplace_back(at, fresh & ~effects_[at].kills);
    }
  }

  const LoopCode& loop_;
  std::span<const Effect> effects_;
  std::vector<RegisterSet> live_;
  std::vector<RegisterSet> reached_;  // before each instruction, by what is followed now
  std::vector<uint32_t> touched_;     // instructions that something has reached
  std::vector<std::pair<uint32_t, RegisterSet>> work_;
};

// Registers that may still hold, before an instruction, what they held at the header of `part`.
std::vector<RegisterSet> UntouchedSince(const LoopCode& loop, std::span<const Effect> effects,
                                        const std::vector<uint32_t>& order, const InnerLoop& part) {
  std::vector<RegisterSet> untouched(effects.size(), 0);
  untouched[part.header] = ~RegisterSet{0};
  bool again = true;
  while (again) {
    again = false;
    for (const uint32_t i : order) {
      if (!part.in[i]) continue;
      const RegisterSet passed = untouched[i] & ~effects[i].kills;
      for (const uint32_t to : loop.next[i]) {
        const bool stays = to != part.header && to != loop.entry && part.in[to];
        if (!stays || (passed & ~untouched[to]) == 0) continue;
        untouched[to] |= passed;
        again = true;
      }
    }
  }
  return untouched;
}

void AddCarriedUses(const LoopCode& loop, std::span<const Effect> effects,
                    const std::vector<uint32_t>& order, const InnerLoop& part,
                    std::vector<CarriedUse>* uses) {
  const std::vector<RegisterSet> untouched = UntouchedSince(loop, effects, order, part);
  RegisterSet written = 0;
  for (const uint32_t i : order)
    if (part.in[i]) written |= effects[i].writes;
  for (uint32_t i = 0; i < effects.size(); ++i) {
    RegisterSet set = effects[i].reads & untouched[i] & written;
    for (; set != 0; set &= set - 1) uses->push_back({i, std::countr_zero(set), part.header});
  }
}

}  // namespace

Effect EffectOf(const LoopInstruction& i) {
  return {i.reads, i.writes, i.kills};
}

Effect EffectOf(std::span<const LoopInstruction> instructions) {
  Effect all;
  for (const LoopInstruction& i : instructions) {
    all.reads |= i.reads & ~all.kills;
    all.writes |= i.writes;
    all.kills |= i.kills;
  }
  return all;
}

std::vector<Effect> Effects(const LoopCode& loop) {
  std::vector<Effect> effects;
  for (const LoopInstruction& i : loop.instructions) effects.push_back(EffectOf(i));
  return effects;
}

std::vector<RegisterSet> LiveBefore(const LoopCode& loop, std::span<const Effect> effects,
                                    RegisterSet at_exit) {
  std::vector<RegisterSet> live(effects.size(), 0);
  bool again = true;
  while (again) {
    again = false;
    for (size_t n = effects.size(); n-- > 0;) {
      RegisterSet after = loop.exits[n].empty() ? 0 : at_exit;
      for (uint32_t to : loop.next[n]) after |= live[to];
      const RegisterSet before = effects[n].reads | (after & ~effects[n].kills);
      again = again || before != live[n];
      live[n] = before;
    }
  }
  return live;
}

Definitions::Definitions(const LoopCode& loop, std::span<const Effect> effects)
    : uses_(effects.size()) {
  const auto count = static_cast<uint32_t>(effects.size());
  for (uint32_t at = 0; at < count; ++at) {
    const RegisterSet reads = effects[at].reads;
    uses_[at] = {reads, std::vector<Reach>(static_cast<size_t>(std::popcount(reads)))};
  }
  const auto at_use = [this](uint32_t at, int number) -> Reach& {
    return uses_[at].reach[Index(uses_[at], number)];
  };
  LiveRanges ranges(loop, effects);
  ranges.Follow(std::span(&loop.entry, 1), ~RegisterSet{0},
                [&](uint32_t at, int number) { at_use(at, number).from_outside = true; });
  for (uint32_t from = 0; from < count; ++from) {
    ranges.Follow(loop.next[from], effects[from].writes,
                  [&](uint32_t at, int number) { at_use(at, number).from.push_back(from); });
  }
}

size_t Definitions::Index(const Uses& uses, int number) {
  return static_cast<size_t>(std::popcount(uses.reads & (Bit(number) - 1)));
}

const Definitions::Reach& Definitions::Of(uint32_t at, int number) const {
  const Uses& uses = uses_[at];
  return (uses.reads & Bit(number)) != 0 ? uses.reach[Index(uses, number)] : none_;
}

std::vector<CarriedUse> CarriedUses(const LoopCode& loop, std::span<const Effect> effects) {
  const std::vector<uint32_t> order = ForwardOrder(loop);
  std::vector<CarriedUse> uses;
  const InnerLoop whole{loop.entry, std::vector<bool>(effects.size(), true)};
  AddCarriedUses(loop, effects, order, whole, &uses);
  for (const InnerLoop& inner : loop.inner) AddCarriedUses(loop, effects, order, inner, &uses);
  std::sort(uses.begin(), uses.end());
  return uses;
}

std::vector<CarriedUse> AddedRecurrences(const LoopCode& loop, std::span<const Effect> copy) {
  const std::vector<CarriedUse> old = CarriedUses(loop, Effects(loop));
  const std::vector<CarriedUse> now = CarriedUses(loop, copy);
  std::vector<CarriedUse> added;
  std::set_difference(now.begin(), now.end(), old.begin(), old.end(), std::back_inserter(added));
  return added;
}

}  // namespace perfd::agent
