#include "agent/variant/roles.h"

#include <algorithm>
#include <bit>

#include "absl/strings/match.h"
#include "agent/variant/counting.h"
#include "agent/variant/symbolic.h"
#include "agent/variant/thread_block.h"

namespace perfd::agent {
namespace {

// Which accesses a trace tells the addresses of.
std::vector<bool> Traced(const LoopCode& loop) {
  std::vector<bool> traced(loop.instructions.size());
  const std::vector<Reference> references = References(loop);
  for (size_t n = 0, at = 0; n < std::min<size_t>(references.size(), kTraceCount); ++n) {
    while (loop.instructions[at].address != references[n].instruction) ++at;
    traced[at] = references[n].traced;
  }
  return traced;
}

class Slicer {
 public:
  explicit Slicer(const LoopCode& loop)
      : loop_(loop), effects_(Effects(loop)), definitions_(loop, effects_), aliases_(loop) {
    for (uint32_t at = 0; at < loop.instructions.size(); ++at) {
      const LoopInstruction& i = loop.instructions[at];
      const bool stores = i.Is(kStores | kStringOp | kX87) || i.flow == LoopFlow::kCall;
      if (stores) stores_.push_back({at, StoresFloats(at)});
    }
    if (AliasingOf(loop) == Aliasing::kExcluded) traced_ = Traced(loop);
  }

  Slice From(std::vector<uint32_t> work) const {
    Slice slice;
    slice.in.resize(loop_.instructions.size());
    for (uint32_t i : work) slice.in[i] = true;
    while (!work.empty()) {
      const uint32_t at = work.back();
      work.pop_back();
      for (uint32_t source : SourcesOf(at)) {
        if (slice.in[source]) continue;
        slice.in[source] = true;
        work.push_back(source);
      }
    }
    if (!traced_.empty()) slice.taken_apart = PairsOf(slice.in);
    return slice;
  }

  std::vector<uint32_t> MakersOf(uint32_t at, RegisterSet set) const {
    std::vector<uint32_t> makers;
    for (; set != 0; set &= set - 1) {
      const Definitions::Reach& reach = definitions_.Of(at, std::countr_zero(set));
      makers.insert(makers.end(), reach.from.begin(), reach.from.end());
    }
    return makers;
  }

  // Of each instruction there are two nodes: what it does, and, behind all of these, what it loads. A load waits for its address and for
  // what may store what it reads, not for the other operands.
  bool CutsChain(const std::vector<bool>& changed) const {
    const auto count = static_cast<uint32_t>(changed.size());
    Graph sources(2 * size_t{count}), users(2 * size_t{count});
    for (uint32_t at = 0; at < count; ++at) {
      const LoopInstruction& i = loop_.instructions[at];
      sources[at] = MakersOf(at, effects_[at].reads);
      if (!i.Is(kLoads | kStringOp)) continue;
      sources[at].push_back(count + at);
      sources[count + at] = MakersOf(at, i.address_reads);
      for (const Store& store : stores_) {
        if (MayStoreFor(store, at)) sources[count + at].push_back(store.at);
      }
    }
    for (uint32_t at = 0; at < 2 * count; ++at) {
      for (const uint32_t source : sources[at]) users[source].push_back(at);
    }
    for (uint32_t load = count; load < 2 * count; ++load) {
      if (sources[load].empty()) continue;
      const std::vector<bool> before = ReachedFrom(sources, load);
      if (!before[load]) continue;
      const std::vector<bool> after = ReachedFrom(users, load);
      for (uint32_t at = 0; at < 2 * count; ++at) {
        if (before[at] && after[at] && changed[at % count]) return true;
      }
    }
    return false;
  }

  std::vector<AccessPair> MemoryChainsCut(const std::vector<bool>& changed) const {
    const auto count = static_cast<uint32_t>(changed.size());
    Graph sources(count), users(count);
    for (uint32_t at = 0; at < count; ++at) {
      const LoopInstruction& i = loop_.instructions[at];
      sources[at] = MakersOf(at, effects_[at].reads & ~i.address_reads);
      for (const uint32_t source : sources[at]) users[source].push_back(at);
    }
    std::vector<AccessPair> cut;
    for (const Store& store : stores_) {
      if (!loop_.instructions[store.at].memory || !MayStayInPlace(store.at)) continue;
      const std::vector<bool> before = WithStart(ReachedFrom(sources, store.at), store.at);
      for (uint32_t load = 0; load < count; ++load) {
        if (!before[load] || !ReadsWhat(store.at, load) || IsRefilled(store.at, load)) continue;
        const std::vector<bool> after = WithStart(ReachedFrom(users, load), load);
        bool touched = false;
        for (uint32_t at = 0; at < count; ++at)
          touched = touched || (before[at] && after[at] && changed[at]);
        if (touched)
          cut.push_back({loop_.instructions[store.at].address, loop_.instructions[load].address});
      }
    }
    std::sort(cut.begin(), cut.end());
    return cut;
  }

 private:
  using Graph = std::vector<std::vector<uint32_t>>;
  struct Store {
    uint32_t at = 0;
    bool floats = false;  // and nothing else
  };

  // Over at least one edge.
  static std::vector<bool> ReachedFrom(const Graph& edges, uint32_t start) {
    std::vector<bool> reached(edges.size());
    std::vector<uint32_t> work = {start};
    while (!work.empty()) {
      const uint32_t at = work.back();
      work.pop_back();
      for (const uint32_t next : edges[at]) {
        if (reached[next]) continue;
        reached[next] = true;
        work.push_back(next);
      }
    }
    return reached;
  }

  static std::vector<bool> WithStart(std::vector<bool> reached, uint32_t start) {
    reached[start] = true;
    return reached;
  }

  bool ReadsWhat(uint32_t store, uint32_t load) const {
    return loop_.instructions[load].Is(kLoads) && aliases_.SamePlace(store, load);
  }

  // On every way of a pass to the load another store has put something there.
  bool IsRefilled(uint32_t store, uint32_t load) const {
    std::vector<bool> seen(loop_.instructions.size());
    std::vector<uint32_t> work = {loop_.entry};
    seen[loop_.entry] = true;
    while (!work.empty()) {
      const uint32_t at = work.back();
      work.pop_back();
      if (at == load) return false;
      if (at != store && Covers(at, load)) continue;
      for (const uint32_t next : loop_.next[at]) {
        if (next == loop_.entry || seen[next]) continue;
        seen[next] = true;
        work.push_back(next);
      }
    }
    return true;
  }

  bool Covers(uint32_t at, uint32_t load) const {
    const LoopInstruction& i = loop_.instructions[at];
    const Role& to = loop_.roles[at];
    const Role& from = loop_.roles[load];
    if (!i.Is(kStores) || !i.memory || to.group != from.group) return false;
    const uint64_t ahead = from.offset - to.offset;  // wraps where the store begins behind the load
    return ahead <= i.memory->bytes &&
           loop_.instructions[load].memory->bytes <= i.memory->bytes - ahead;
  }

  // What it loads is the same in every pass.
  bool LoadsConstant(uint32_t at) const {
    const LoopInstruction& i = loop_.instructions[at];
    return i.memory && aliases_.IsInvariant(*i.memory) &&
           std::none_of(stores_.begin(), stores_.end(),
                        [&](const Store& store) { return MayStoreFor(store, at); });
  }

  // Its address is made of what is loaded, or of nothing that the loop changes; else each pass goes on to another one.
  bool MayStayInPlace(uint32_t at) const {
    const LoopInstruction& i = loop_.instructions[at];
    if (i.memory->vector_index) return true;
    std::vector<uint32_t> work = MakersOf(at, i.address_reads);
    bool moves = false;
    std::vector<bool> seen(loop_.instructions.size());
    while (!work.empty()) {
      const uint32_t maker = work.back();
      work.pop_back();
      if (seen[maker]) continue;
      seen[maker] = true;
      if (loop_.instructions[maker].Is(kLoads) && LoadsConstant(maker)) continue;
      if (loop_.instructions[maker].Is(kLoads)) return true;
      moves = true;
      for (const uint32_t next : MakersOf(maker, effects_[maker].reads)) work.push_back(next);
    }
    return !moves;
  }

  std::vector<uint32_t> SourcesOf(uint32_t at) const {
    std::vector<uint32_t> sources = MakersOf(at, effects_[at].reads);
    const LoopInstruction& i = loop_.instructions[at];
    if (!i.Is(kLoads | kStringOp)) return sources;
    for (const Store& store : stores_) {
      if (MayStoreFor(store, at) && !CanBeShownApart(store.at, at)) sources.push_back(store.at);
    }
    return sources;
  }

  bool MayStoreFor(const Store& store, uint32_t load) const {
    return store.at != load && !(store.floats && IsInteger(loop_.instructions[load])) &&
           aliases_.MayAlias(store.at, load);
  }

  // Addresses that code alone tells need no trace.
  bool CanBeShownApart(uint32_t s, uint32_t load) const {
    return !traced_.empty() && traced_[s] && traced_[load] && !aliases_.SameOperand(s, load);
  }

  // A store outside the slice that might have been taken for what a load in it reads.
  std::vector<AccessPair> PairsOf(const std::vector<bool>& in) const {
    std::vector<AccessPair> pairs;
    for (uint32_t load = 0; load < in.size(); ++load) {
      if (!in[load] || !loop_.instructions[load].Is(kLoads | kStringOp)) continue;
      for (const Store& store : stores_) {
        if (!in[store.at] && MayStoreFor(store, load))
          pairs.push_back({loop_.instructions[store.at].address, loop_.instructions[load].address});
      }
    }
    return pairs;
  }

  static bool IsInteger(const LoopInstruction& i) { return !i.Is(kVectorOp | kX87 | kStringOp); }

  // Every value it may store was computed by floating-point arithmetic in this loop, or is zero where another way to the same
  // store computes it: what has the type of one has it on every way.
  bool StoresFloats(uint32_t at) const {
    const LoopInstruction& i = loop_.instructions[at];
    if (!i.Is(kVectorOp) || i.Is(kStringOp)) return false;
    const RegisterSet data = i.reads & kAllVector & ~i.address_reads;
    if (data == 0) return false;
    for (RegisterSet set = data; set != 0; set &= set - 1) {
      const Definitions::Reach& reach = definitions_.Of(at, std::countr_zero(set));
      if (reach.from_outside || reach.from.empty()) return false;
      bool computed = false;
      for (uint32_t maker : reach.from) {
        const bool floating = loop_.instructions[maker].Is(kFloating);
        computed = computed || floating;
        if (!floating && !IsZero(maker)) return false;
      }
      if (!computed) return false;
    }
    return true;
  }

  // It clears its destination, whatever was in its sources (IsZeroIdiom; a comparison for equality sets all bits instead).
  bool IsZero(uint32_t at) const {
    const LoopInstruction& i = loop_.instructions[at];
    return i.Is(kVectorOp) && !i.Accesses() && effects_[at].reads == 0 &&
           (i.writes & kAllVector) != 0 && !absl::StrContains(i.mnemonic, "cmpeq");
  }

  const LoopCode& loop_;
  std::vector<Effect> effects_;
  Definitions definitions_;
  Aliases aliases_;
  std::vector<Store> stores_;
  std::vector<bool> traced_;  // empty: nothing is taken apart
};

bool CarriesOn(const LoopInstruction& i) {
  if (i.Is(kDivides | kSquareRoots | kStores)) return false;
  return i.Is(kAccumulates) || (i.Is(kMoves) && i.Is(kVectorOp) && !i.Accesses());
}

// Whether a value of instruction `start` comes back to it through accumulating operations and copies only.
bool ComesBack(uint32_t start, const std::vector<std::vector<uint32_t>>& makers) {
  std::vector<bool> seen(makers.size());
  std::vector<uint32_t> work = {start};
  while (!work.empty()) {
    const uint32_t at = work.back();
    work.pop_back();
    for (uint32_t maker : makers[at]) {
      if (maker == start) return true;
      if (seen[maker]) continue;
      seen[maker] = true;
      work.push_back(maker);
    }
  }
  return false;
}

void AssignReductions(const Slicer& slicer, LoopCode* loop) {
  const size_t count = loop->instructions.size();
  std::vector<std::vector<uint32_t>> makers(count);
  for (uint32_t i = 0; i < count; ++i) {
    if (!CarriesOn(loop->instructions[i])) continue;
    const RegisterSet values = loop->instructions[i].reads & kAllVector;
    for (uint32_t maker : slicer.MakersOf(i, values))
      if (CarriesOn(loop->instructions[maker])) makers[i].push_back(maker);
  }
  for (uint32_t i = 0; i < count; ++i)
    loop->roles[i].reduction = loop->instructions[i].Is(kAccumulates) && ComesBack(i, makers);
}

}  // namespace

bool CutsChain(const LoopCode& loop, const std::vector<bool>& changed) {
  return Slicer(loop).CutsChain(changed);
}

std::vector<AccessPair> MemoryChainsCut(const LoopCode& loop, const std::vector<bool>& changed) {
  return Slicer(loop).MemoryChainsCut(changed);
}

Slice BackwardSlice(const LoopCode& loop, const std::vector<uint32_t>& seeds) {
  return Slicer(loop).From(seeds);
}

void AddPairs(const std::vector<AccessPair>& from, std::vector<AccessPair>* to) {
  to->insert(to->end(), from.begin(), from.end());
  std::sort(to->begin(), to->end());
  to->erase(std::unique(to->begin(), to->end()), to->end());
}

void AssignRoles(LoopCode* loop) {
  const Slicer slicer(*loop);
  std::vector<uint32_t> branches;
  std::vector<uint32_t> addresses;
  for (uint32_t i = 0; i < loop->instructions.size(); ++i) {
    const LoopInstruction& instruction = loop->instructions[i];
    const bool branches_here =
        instruction.flow == LoopFlow::kBranch || instruction.flow == LoopFlow::kJump;
    if (branches_here || instruction.Is(kStringOp)) branches.push_back(i);
    const std::vector<uint32_t> makers = slicer.MakersOf(i, instruction.address_reads);
    addresses.insert(addresses.end(), makers.begin(), makers.end());
  }
  const Slice control = slicer.From(branches);
  const Slice address = slicer.From(addresses);
  for (size_t i = 0; i < loop->roles.size(); ++i) {
    loop->roles[i].control = control.in[i];
    loop->roles[i].address = address.in[i];
  }
  if (loop->taken_apart) {
    loop->taken_apart->clear();
    AddPairs(control.taken_apart, &*loop->taken_apart);
    AddPairs(address.taken_apart, &*loop->taken_apart);
  }
  AssignReductions(slicer, loop);
}

}  // namespace perfd::agent
