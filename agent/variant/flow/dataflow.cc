#include "agent/variant/flow/dataflow.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "agent/variant/flow/edges.h"

namespace perfd::agent {
namespace {

std::vector<std::vector<uint32_t>> Previous(const LoopCode& loop) {
  std::vector<std::vector<uint32_t>> previous(loop.next.size());
  for (uint32_t i = 0; i < loop.next.size(); ++i)
    for (uint32_t to : loop.next[i]) previous[to].push_back(i);
  return previous;
}

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
    : entry_(loop.entry), effects_(effects), previous_(Previous(loop)) {}

Definitions::Reach Definitions::Of(uint32_t at, int number) const {
  const RegisterSet bit = Bit(number);
  Reach reach;
  std::vector<bool> seen(effects_.size());
  std::vector<uint32_t> work = {at};
  while (!work.empty()) {
    const uint32_t here = work.back();
    work.pop_back();
    if (here == entry_) reach.from_outside = true;
    for (uint32_t before : previous_[here]) {
      if (seen[before]) continue;
      seen[before] = true;
      if ((effects_[before].writes & bit) != 0) reach.from.push_back(before);
      if ((effects_[before].kills & bit) == 0) work.push_back(before);
    }
  }
  return reach;
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
