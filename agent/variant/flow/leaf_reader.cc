#include "agent/variant/flow/leaf_reader.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/variant/decode.h"
#include "agent/variant/flow/leaf_frame.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

using Code = std::map<uint64_t, LoopInstruction>;

// Not canonical: no code is ever there.
constexpr uint64_t kExits = uint64_t{1} << 63;

absl::Status NoLeaf(absl::string_view reason) {
  return absl::FailedPreconditionError(reason);
}

bool IsReturn(const LoopInstruction& i) {
  constexpr uint8_t kNear = 0xc3;  // the others take more than an address off the stack
  return i.flow == LoopFlow::kEnd && i.mnemonic == "ret" && i.bytes[i.length - 1u] == kNear;
}

// Source: Intel SDM vol. 2, ENDBR64: where an indirect call may arrive; does nothing.
void ForgetMark(LoopInstruction* i) {
  if (i->mnemonic != "endbr64") return;
  i->traits = kNopTrait;
  i->reads = i->writes = i->kills = 0;
  i->refusal.clear();
}

// Text from an address on, the longest that is held; empty: none is.
std::span<const uint8_t> TextAt(const LoopBytes& bytes, uint64_t address) {
  std::span<const uint8_t> longest;
  for (const CodeText& text : bytes.called.text) {
    if (address < text.address || address >= text.end()) continue;
    const auto rest = std::span(text.bytes).subspan(address - text.address);
    if (rest.size() > longest.size()) longest = rest;
  }
  return longest;
}

bool WasAsked(const LoopBytes& bytes, uint64_t address) {
  return std::any_of(bytes.called.text.begin(), bytes.called.text.end(),
                     [address](const CodeText& text) { return text.address == address; });
}

bool ReadsNearby(const LoopInstruction& i) {
  return i.memory && i.memory->base == kInstructionPointer;
}

// What functions of libraries write in thread-local memory is errno: a rare path, which no trace would show to be apart from the loop.
bool SetsError(const LoopInstruction& i) {
  return i.memory && i.memory->writes && i.memory->thread_local_segment;
}

std::vector<uint64_t> After(const LoopInstruction& i) {
  std::vector<uint64_t> next;
  if (i.flow == LoopFlow::kBranch || i.flow == LoopFlow::kJump) next.push_back(i.target);
  if (i.flow == LoopFlow::kPlain || i.flow == LoopFlow::kBranch) next.push_back(i.end());
  return next;
}

// Instructions overlap where something jumps into the middle of one.
bool Overlap(const Code& code) {
  uint64_t end = 0;
  for (const auto& [address, i] : code) {
    if (address < end) return true;
    end = i.end();
  }
  return false;
}

bool GoesRound(const Code& code, uint64_t at, std::map<uint64_t, bool>* open) {
  const auto instruction = code.find(at);
  if (instruction == code.end()) return false;  // it is left there
  const auto [seen, first] = open->try_emplace(at, true);
  if (!first) return seen->second;
  for (const uint64_t to : After(instruction->second)) {
    if (GoesRound(code, to, open)) return true;
  }
  (*open)[at] = false;
  return false;
}

void AddRange(const LoopInstruction& i, std::vector<CodeRange>* ranges) {
  if (!ranges->empty() && ranges->back().high == i.address)
    ranges->back().high = i.end();
  else
    ranges->push_back({i.address, i.end()});
}

template <typename T>
void AppendAll(const std::vector<T>& from, std::vector<T>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

// Of functions that a leaf calls, also of those that turn out to be no leaves.
constexpr int kMostCalledInstructions = 4 * static_cast<int>(kMostLeafInstructions);

// What the readers of one leaf, and of what it calls, have in common.
struct Reading {
  const LoopBytes& bytes;
  WantedCode& wanted;
  int left = 0;       // instructions of called functions that may still be read, in vain too
  bool calls = true;  // functions that it calls are taken in
  std::set<uint64_t> leave_at;  // instructions that no copy can hold, as was found out
};

class LeafReader {
 public:
  LeafReader(LeafCall call, Reading* reading)
      : bytes_(reading->bytes), call_(std::move(call)), reading_(*reading) {}

  absl::StatusOr<Leaf> Run() {
    RETURN_IF_ERROR(Read());
    RETURN_IF_ERROR(CheckFlags());
    for (const auto& [address, i] : leaf_.code) {
      AddRange(i, &leaf_.parts.ranges);
      if (places_.at(address).far) AddRange(i, &leaf_.parts.far);
    }
    return std::move(leaf_);
  }

  // After Run: of each instruction, how deep the return addresses lie that are there in the original.
  std::map<uint64_t, std::vector<int64_t>> Returns() const {
    std::map<uint64_t, std::vector<int64_t>> returns;
    for (const auto& [address, place] : places_) returns[address] = place.returns;
    return returns;
  }

 private:
  static constexpr size_t kMostCallsDeep = 4;
  static constexpr int64_t kElsewhere = -1;  // the depth of what a called function holds

  struct Step {
    uint64_t at = 0;
    const ImportSlot* module = nullptr;  // that of the loop: null
    int64_t depth = 0;                   // of the stack pointer before it, below the loop's
  };
  struct Place {
    int64_t depth = 0;
    bool far = false;  // of another module than the loop
    std::vector<int64_t> returns = {};
  };

  absl::Status Read() {
    work_.push_back({call_.entry, call_.module, OwnDepth()});
    std::vector<int64_t> returns;
    for (const ReturnAddress& address : call_.returns) returns.push_back(address.depth);
    if (call_.through != nullptr) leaf_.parts.slots.push_back(*call_.through);
    while (!work_.empty()) {
      const Step step = work_.back();
      work_.pop_back();
      const Place here{step.depth, step.module != nullptr, returns};
      const auto [place, first] = places_.try_emplace(step.at, here);
      if (!first && place->second.depth != here.depth)
        return NoLeaf("its stack pointer is not known");
      if (first) RETURN_IF_ERROR(ReadOne(step));
    }
    if (!returns_) {
      reading_.wanted.text.insert(reading_.wanted.text.end(), tails_.begin(), tails_.end());
      return NoLeaf(left_at_.empty() ? "it never returns" : left_at_);
    }
    std::map<uint64_t, bool> open;
    if (!complete_) return NoLeaf("what it reads is not known");
    if (Overlap(leaf_.code)) return NoLeaf("its instructions overlap");
    if (GoesRound(leaf_.code, call_.entry, &open)) return NoLeaf("it has a loop");
    return absl::OkStatus();
  }

  int64_t OwnDepth() const { return call_.returns.back().depth; }

  absl::Status ReadOne(const Step& step) {
    const std::span<const uint8_t> text = TextAt(bytes_, step.at);
    std::optional<LoopInstruction> i = DecodeLoopInstruction(text, step.at, bytes_.bias);
    if (!i && !WasAsked(bytes_, step.at)) reading_.wanted.text.push_back(step.at);
    if (!i) return NoLeaf("its code is not known");
    const bool called = call_.returns.size() > 1;
    if (leaf_.code.size() >= kMostLeafInstructions || (called && reading_.left-- <= 0))
      return NoLeaf("it is long");
    ForgetMark(&*i);
    if (IsReturn(*i)) {
      if (step.depth != OwnDepth()) return NoLeaf("it returns with another stack pointer");
      returns_ = true;
      MakeJump(call_.returns.back().back, &*i);
    } else {
      FollowOrLeave(step, &*i);
    }
    leaf_.code.emplace(step.at, *std::move(i));
    return absl::OkStatus();
  }

  void FollowOrLeave(const Step& step, LoopInstruction* i) {
    const std::optional<int64_t> lowers = Lowers(*i);
    const bool room =
        lowers && step.depth + *lowers >= OwnDepth() && step.depth + *lowers <= kRedZone;
    const auto framed = InFrame(*i, step.depth, bytes_.bias);
    const bool leave = reading_.leave_at.contains(i->address);
    if (const std::optional<uint64_t> slot = SlotOf(*i); slot && i->flow == LoopFlow::kEnd) {
      if (FollowSlot(*slot, step, i)) return;
    } else if (i->flow == LoopFlow::kCall) {
      if (TakeInCall(step, i)) return;
    } else if (!leave && room && framed.ok() && MayStandIn(step, *framed)) {
      // Flags of what moves the stack pointer: copies do not set them.
      if ((i->writes & ~framed->writes & kStatusFlags) != 0) flagless_.push_back(i->address);
      *i = *framed;
      Follow(step, step.depth + *lowers, i);
      return;
    }
    Leave(step, i->address, *i);
    MakeJump(leaf_.parts.exits.back().exit, i);
  }

  bool FollowSlot(uint64_t address, const Step& step, LoopInstruction* i) {
    const ImportSlot* slot = SlotAt(bytes_, address);
    if (slot == nullptr) reading_.wanted.slots.push_back(address);
    if (slot == nullptr || slot->value == 0) return false;
    leaf_.parts.slots.push_back(*slot);
    MakeJump(slot->value, i);
    work_.push_back({slot->value, slot, step.depth});
    return true;
  }

  // What it calls is read like itself, one return address deeper.
  bool TakeInCall(const Step& step, LoopInstruction* i) {
    const std::optional<uint64_t> slot = i->target == 0 ? SlotOf(*i) : std::nullopt;
    const ImportSlot* through = slot ? SlotAt(bytes_, *slot) : nullptr;
    if (slot && through == nullptr) reading_.wanted.slots.push_back(*slot);
    const uint64_t entry = EntryOf(bytes_, *i).value_or(0);
    const int64_t depth = step.depth + kReturnAddressBytes;
    const bool readable = entry != 0 && (i->branch_at == 1 || slot) && i->refusal.empty() &&
                          reading_.calls && reading_.left > 0;
    if (!readable || depth > kRedZone || call_.returns.size() >= kMostCallsDeep) return false;
    if (places_.contains(entry)) return false;  // called twice
    LeafCall call{entry, call_.returns, call_.first_exit + leaf_.parts.exits.size(), through,
                  through == nullptr ? step.module : through};
    call.returns.push_back({depth, i->end()});
    LeafReader called(std::move(call), &reading_);
    if (!called.Read().ok() || !Merge(&called)) return false;
    MakeJump(entry, i);
    work_.push_back({i->end(), step.module, step.depth});
    return true;
  }

  // False: something of it is there already, or it is long with it.
  bool Merge(LeafReader* called) {
    const auto meets = [this](const auto& place) { return places_.contains(place.first); };
    if (std::any_of(called->places_.begin(), called->places_.end(), meets)) return false;
    if (leaf_.code.size() + called->leaf_.code.size() > kMostLeafInstructions) return false;
    for (const auto& [address, place] : called->places_)
      places_.emplace(address, Place{kElsewhere, place.far, place.returns});
    leaf_.code.merge(called->leaf_.code);
    Append(called->leaf_.parts, &leaf_.parts);
    AppendAll(called->leaf_.texts, &leaf_.texts);
    AppendAll(called->flagless_, &flagless_);
    return true;
  }

  // A way into text that is not held is a way out: another function, or the rarely executed part of this one.
  void Follow(const Step& step, int64_t depth, LoopInstruction* i) {
    const bool jumps = i->flow == LoopFlow::kBranch || i->flow == LoopFlow::kJump;
    if (jumps && TextAt(bytes_, i->target).empty()) {
      if (i->flow == LoopFlow::kJump && !WasAsked(bytes_, i->target)) tails_.push_back(i->target);
      Leave(step, i->target, *i);
      i->target = leaf_.parts.exits.back().exit;
    } else if (jumps) {
      work_.push_back({i->target, step.module, depth});
    }
    if (i->flow == LoopFlow::kPlain || i->flow == LoopFlow::kBranch)
      work_.push_back({i->end(), step.module, depth});
  }

  void Leave(const Step& step, uint64_t to, const LoopInstruction& i) {
    const uint64_t number = call_.first_exit + leaf_.parts.exits.size();
    leaf_.parts.exits.push_back({kExits + number, to, step.depth, call_.returns});
    const LoadBias bias = step.module == nullptr ? bytes_.bias : step.module->bias;
    const std::optional<LoopInstruction> named =
        DecodeLoopInstruction(i.original(), i.address, bias);
    std::string text = absl::StrCat("0x", absl::Hex(named->listed.value()), " `", named->text, "`",
                                    step.module == nullptr ? "" : " of ",
                                    step.module == nullptr ? "" : step.module->module);
    if (left_at_.empty()) left_at_ = text;
    leaf_.texts.push_back(std::move(text));
  }

  bool MayStandIn(const Step& step, const LoopInstruction& i) {
    const bool moves =
        i.flow == LoopFlow::kPlain || i.flow == LoopFlow::kBranch || i.flow == LoopFlow::kJump;
    if (!moves || !i.refusal.empty()) return false;
    return step.module == nullptr || (!SetsError(i) && (!ReadsNearby(i) || MayBeMoved(i)));
  }

  // Of a far function: an address becomes a number, and what is read a copy of it.
  bool MayBeMoved(const LoopInstruction& i) {
    if (i.mnemonic == "lea") return i.destination_bytes == 8;
    if (!i.Accesses() || i.memory->writes || i.memory->bytes == 0) return false;
    const CodeRange range{i.memory->target, i.memory->target + i.memory->bytes};
    const auto& all = bytes_.called.constants;
    const auto constant = std::find_if(all.begin(), all.end(),
                                       [&range](const Constant& c) { return c.range == range; });
    if (constant == all.end()) {
      // What comes behind it is looked at all the same: all that is wanted is told at once.
      reading_.wanted.constants.push_back(range);
      complete_ = false;
      return true;
    }
    if (constant->bytes.empty()) return false;
    leaf_.parts.constants.push_back(*constant);
    return true;
  }

  // Nobody may look at flags that copies do not set. Whoever calls and who is called never do; for the loop itself that is
  // looked at once its edges are known.
  absl::Status CheckFlags() {
    for (const uint64_t from : flagless_) {
      std::vector<std::pair<uint64_t, RegisterSet>> work = {
          {leaf_.code.at(from).end(), kStatusFlags}};
      std::map<uint64_t, RegisterSet> seen;
      while (!work.empty()) {
        const auto [at, flags] = work.back();
        work.pop_back();
        const RegisterSet fresh = flags & ~seen[at];
        if (fresh == 0) continue;
        seen[at] |= fresh;
        const auto i = leaf_.code.find(at);
        if (i == leaf_.code.end()) {
          RETURN_IF_ERROR(CheckFlagsOutside(at));
          continue;
        }
        if ((i->second.reads & fresh) != 0) return NoLeaf("it looks at flags of its stack pointer");
        for (const uint64_t to : After(i->second)) work.emplace_back(to, fresh & ~i->second.kills);
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckFlagsOutside(uint64_t at) {
    if (at == call_.returns.front().back) {
      leaf_.parts.without_flags = {at};
      return absl::OkStatus();
    }
    const auto& exits = leaf_.parts.exits;
    const auto exit =
        std::find_if(exits.begin(), exits.end(), [at](const LeafExit& e) { return e.exit == at; });
    const uint64_t to = exit == exits.end() ? at : exit->to;
    const std::optional<FlowStep> step = DecodeFlow(TextAt(bytes_, to), to);
    if (step && step->flow == LoopFlow::kCall) return absl::OkStatus();
    return NoLeaf("flags of its stack pointer may be looked at where it is left");
  }

  const LoopBytes& bytes_;
  const LeafCall call_;
  Reading& reading_;
  std::vector<Step> work_;
  std::map<uint64_t, Place> places_;  // by instruction
  std::vector<uint64_t> tails_;
  std::vector<uint64_t> flagless_;  // instructions whose flags copies do not set
  std::string left_at_;
  Leaf leaf_;
  bool returns_ = false;
  bool complete_ = true;
};

// What touches the stack beyond what copies hold is left out, until nothing does.
absl::StatusOr<Leaf> ReadWithin(const LeafCall& call, Reading* reading) {
  constexpr int kMostRounds = 8;
  reading->leave_at.clear();
  for (int round = 0; round < kMostRounds; ++round) {
    reading->left = kMostCalledInstructions;
    LeafReader reader(call, reading);
    absl::StatusOr<Leaf> leaf = reader.Run();
    if (!leaf.ok()) return leaf;
    const std::vector<uint64_t> beyond = TouchBeyondFrame(leaf->code, call.entry, reader.Returns());
    if (beyond.empty()) return leaf;
    reading->leave_at.insert(beyond.begin(), beyond.end());
  }
  return NoLeaf("where it touches the stack is not known");
}

}  // namespace

void Append(const Leaves& parts, Leaves* to) {
  AppendAll(parts.ranges, &to->ranges);
  AppendAll(parts.far, &to->far);
  AppendAll(parts.slots, &to->slots);
  AppendAll(parts.constants, &to->constants);
  AppendAll(parts.exits, &to->exits);
  AppendAll(parts.without_flags, &to->without_flags);
  AppendAll(parts.refusals, &to->refusals);
}

void MakeJump(uint64_t target, LoopInstruction* i) {
  i->flow = LoopFlow::kJump;
  i->target = target;
  i->branch_at = 1;
  i->displacement_at = 0;
  i->traits = 0;
  i->reads = i->writes = i->kills = i->address_reads = 0;
  i->memory.reset();
  i->destination = kNoRegister;
  i->step.source = kNoRegister;
  i->refusal.clear();
}

std::optional<uint64_t> SlotOf(const LoopInstruction& i) {
  const bool indirect = i.mnemonic == "jmp" || i.flow == LoopFlow::kCall;
  if (!indirect || i.target != 0 || !ReadsNearby(i)) return std::nullopt;
  return i.memory->target;
}

const ImportSlot* SlotAt(const LoopBytes& bytes, uint64_t address) {
  const auto& slots = bytes.called.slots;
  const auto slot = std::find_if(slots.begin(), slots.end(),
                                 [address](const ImportSlot& s) { return s.address == address; });
  return slot == slots.end() ? nullptr : &*slot;
}

std::optional<uint64_t> EntryOf(const LoopBytes& bytes, const LoopInstruction& call) {
  if (call.target != 0) return call.target;
  const std::optional<uint64_t> slot = SlotOf(call);
  const ImportSlot* import = slot ? SlotAt(bytes, *slot) : nullptr;
  if (import == nullptr || import->value == 0) return std::nullopt;
  return import->value;
}

absl::StatusOr<Leaf> ReadLeaf(const LoopBytes& bytes, const LeafCall& call, WantedCode* wanted) {
  Reading reading{.bytes = bytes, .wanted = *wanted, .leave_at = {}};
  absl::StatusOr<Leaf> leaf = ReadWithin(call, &reading);
  if (leaf.ok()) return leaf;
  // What it calls may be what cannot be held: then it is left there.
  reading.calls = false;
  absl::StatusOr<Leaf> alone = ReadWithin(call, &reading);
  return alone.ok() ? std::move(alone) : std::move(leaf);
}

}  // namespace perfd::agent
