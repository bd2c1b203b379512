#include "agent/variant/recovery/trip_count.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "agent/variant/flow/dataflow.h"
#include "agent/variant/flow/edges.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// A register's value: what `root` held at the header, plus an offset; no root: the offset alone.
struct Linear {
  int root = kNoRegister;
  uint64_t offset = 0;
  bool narrow = false;  // known modulo 2^32 only

  bool operator==(const Linear&) const = default;
};
using Value = std::optional<Linear>;
using Values = std::array<Value, 16>;

Values AtHeader() {
  Values values;
  for (int r = 0; r < 16; ++r) values[static_cast<size_t>(r)] = Linear{r, 0, false};
  return values;
}

// The constant that a 32-bit instruction adds to its only register operand.
std::optional<int64_t> TrimStep(const LoopInstruction& i) {
  if (i.destination_bytes != 4 || i.memory) return std::nullopt;
  if (i.mnemonic == "inc") return 1;
  if (i.mnemonic == "dec") return -1;
  if (i.mnemonic == "add") return i.immediate;
  if (i.mnemonic == "sub" && i.immediate && *i.immediate != INT64_MIN) return -*i.immediate;
  return std::nullopt;
}

void Apply(const LoopInstruction& i, Values* values) {
  Value made;
  if (i.step.source >= 0 && i.step.source < kVectorRegisters) {
    made = (*values)[static_cast<size_t>(i.step.source)];
    if (made) made->offset += static_cast<uint64_t>(i.step.by);
    if (made && made->narrow) made.reset();
  } else if (const std::optional<int64_t> step = TrimStep(i);
             step && i.destination >= 0 && i.destination < kVectorRegisters) {
    made = (*values)[static_cast<size_t>(i.destination)];
    if (made) made->offset += static_cast<uint64_t>(*step);
    if (made) made->narrow = true;
  }
  for (RegisterSet set = i.writes & kAllGeneral; set != 0; set &= set - 1)
    (*values)[static_cast<size_t>(std::countr_zero(set))].reset();
  if (made) (*values)[static_cast<size_t>(i.destination)] = made;
}

void Join(const Values& other, Values* values) {
  for (size_t r = 0; r < values->size(); ++r) {
    if ((*values)[r] != other[r]) (*values)[r].reset();
  }
}

enum class Relation { kOther, kNotEqual, kLess, kGreater };

// Of left and right where the flags are those of left - right and the condition holds. Source: SDM vol. 2, Jcc.
Relation RelationOf(uint8_t condition) {
  constexpr std::array<Relation, 16> kTable = {
      Relation::kOther, Relation::kOther,    Relation::kLess,  Relation::kGreater,   // o no b ae
      Relation::kOther, Relation::kNotEqual, Relation::kLess,  Relation::kGreater,   // e ne be a
      Relation::kLess,  Relation::kGreater,  Relation::kOther, Relation::kOther,     // s ns p np
      Relation::kLess,  Relation::kGreater,  Relation::kLess,  Relation::kGreater};  // l ge le g
  return kTable[condition & 15];
}

bool IsUnsigned(uint8_t condition) {
  return condition == 2 || condition == 3 || condition == 6 || condition == 7;
}

struct Comparison {
  Value left;
  Value right;
  int bytes = 0;
  bool of_result = false;  // the flags are those of a result, set against zero: no carry to look at
};

class Prover {
 public:
  explicit Prover(const LoopCode& loop)
      : loop_(loop), effects_(Effects(loop)), definitions_(loop, effects_) {
    Follow();
  }

  absl::StatusOr<TripCount> FromBranch(uint32_t at) const {
    const LoopInstruction& branch = loop_.instructions[at];
    if (!IsOnEveryPass(at)) return Refuse(branch, "some passes go round without this exit");
    ASSIGN_OR_RETURN(const uint8_t stays, StayCondition(at));
    ASSIGN_OR_RETURN(const uint32_t from, FlagMaker(at));
    const std::optional<Comparison> comparison = ComparisonOf(from);
    if (!comparison || !comparison->left || !comparison->right)
      return Refuse(loop_.instructions[from], "is no comparison of a counter with a fixed bound");
    if (comparison->of_result && IsUnsigned(stays))
      return Refuse(branch, "leaves by the carry of a sum");
    return Count(*comparison, RelationOf(stays), from);
  }

 private:
  void Follow() {
    before_.assign(loop_.instructions.size(), AtHeader());
    std::vector<bool> reached(loop_.instructions.size());
    bool returned = false;
    reached[loop_.entry] = true;
    for (uint32_t at : ForwardOrder(loop_)) {
      Values values = before_[at];
      Apply(loop_.instructions[at], &values);
      for (uint32_t to : loop_.next[at]) {
        Values& target = to == loop_.entry ? after_ : before_[to];
        const bool known = to == loop_.entry ? std::exchange(returned, true) : reached[to];
        if (to != loop_.entry) reached[to] = true;
        if (known) {
          Join(values, &target);
        } else {
          target = values;
        }
      }
    }
  }

  // No way round leaves this instruction out.
  bool IsOnEveryPass(uint32_t at) const {
    if (at == loop_.entry) return true;
    std::vector<bool> seen(loop_.next.size());
    std::vector<uint32_t> work = {loop_.entry};
    seen[loop_.entry] = seen[at] = true;
    while (!work.empty()) {
      const uint32_t here = work.back();
      work.pop_back();
      for (uint32_t to : loop_.next[here]) {
        if (to == loop_.entry) return false;
        if (seen[to]) continue;
        seen[to] = true;
        work.push_back(to);
      }
    }
    return true;
  }

  // The condition under which the loop goes on.
  absl::StatusOr<uint8_t> StayCondition(uint32_t at) const {
    const LoopInstruction& branch = loop_.instructions[at];
    const bool one_way_out = loop_.exits[at].size() == 1 && loop_.next[at].size() == 1;
    if (branch.flow != LoopFlow::kBranch || !one_way_out || branch.branch_at == 0)
      return Refuse(branch, "is no conditional exit");
    const uint8_t opcode = branch.bytes[branch.branch_at - 1u];
    if (opcode >> 4 != 7 && opcode >> 4 != 8) return Refuse(branch, "is no branch on status flags");
    const bool taken_leaves = loop_.exits[at].front() == branch.target;
    return static_cast<uint8_t>((opcode & 15) ^ (taken_leaves ? 1 : 0));
  }

  // The one instruction that makes all the flags this branch looks at.
  absl::StatusOr<uint32_t> FlagMaker(uint32_t at) const {
    std::optional<uint32_t> maker;
    for (RegisterSet set = loop_.instructions[at].reads & kStatusFlags; set != 0; set &= set - 1) {
      const Definitions::Reach& reach = definitions_.Of(at, std::countr_zero(set));
      const bool one = !reach.from_outside && reach.from.size() == 1;
      if (!one || maker.value_or(reach.from.front()) != reach.from.front())
        return Refuse(loop_.instructions[at], "looks at flags of more than one instruction");
      maker = reach.from.front();
    }
    if (!maker) return Refuse(loop_.instructions[at], "looks at no flag");
    return *maker;
  }

  Value Of(int reg, uint32_t at) const {
    if (reg < 0 || reg >= kVectorRegisters) return std::nullopt;
    return before_[at][static_cast<size_t>(reg)];
  }

  std::optional<Comparison> ComparisonOf(uint32_t at) const {
    const LoopInstruction& i = loop_.instructions[at];
    if (i.memory || (i.destination_bytes != 4 && i.destination_bytes != 8)) return std::nullopt;
    const Value left = Of(i.destination, at);
    const auto constant = [](int64_t value) {
      return Linear{kNoRegister, static_cast<uint64_t>(value), false};
    };
    const int bytes = i.destination_bytes;
    if (i.mnemonic == "cmp" || i.mnemonic == "sub") {
      if (i.immediate) return Comparison{left, constant(*i.immediate), bytes, false};
      const RegisterSet other = i.reads & kAllGeneral & ~Bit(std::max(0, i.destination));
      if (i.mnemonic == "sub" || std::popcount(other) != 1) return std::nullopt;
      return Comparison{left, Of(std::countr_zero(other), at), bytes, false};
    }
    if (i.mnemonic == "dec") return Comparison{left, constant(1), bytes, false};
    const bool same =
        i.mnemonic == "test" && (i.reads & kAllGeneral) == Bit(std::max(0, i.destination));
    if (same && !i.immediate) return Comparison{left, constant(0), bytes, true};
    if (i.mnemonic != "inc" && (i.mnemonic != "add" || !i.immediate)) return std::nullopt;
    Values after = before_[at];
    Apply(i, &after);
    return Comparison{i.destination < 0 ? Value() : after[static_cast<size_t>(i.destination)],
                      constant(0), bytes, true};
  }

  // By how much a value grows from one pass to the next.
  std::optional<int64_t> Growth(const Linear& value) const {
    if (value.root == kNoRegister) return 0;
    const Value& after = after_[static_cast<size_t>(value.root)];
    if (!after || after->root != value.root) return std::nullopt;
    if (!after->narrow) return static_cast<int64_t>(after->offset);
    return static_cast<int32_t>(static_cast<uint32_t>(after->offset));
  }

  bool IsTrimmed(const Linear& value) const {
    if (value.root == kNoRegister) return false;
    const Value& after = after_[static_cast<size_t>(value.root)];
    return value.narrow || (after && after->narrow);
  }

  absl::StatusOr<TripCount> Count(const Comparison& c, Relation relation, uint32_t at) const {
    const LoopInstruction& i = loop_.instructions[at];
    const std::optional<int64_t> left = Growth(*c.left);
    const std::optional<int64_t> right = Growth(*c.right);
    if (!left || !right || (*left == 0) == (*right == 0))
      return Refuse(i, "is no comparison of a counter with a fixed bound");
    if (c.bytes == 8 && (IsTrimmed(*c.left) || IsTrimmed(*c.right)))
      return Refuse(i, "compares 64 bits of a counter of 32");
    const bool counter_left = *left != 0;
    const int64_t step = counter_left ? *left : *right;
    const bool rises = counter_left ? step > 0 : step < 0;  // of left against right
    const bool meets = relation == Relation::kNotEqual || (relation == Relation::kLess && rises) ||
                       (relation == Relation::kGreater && !rises);
    if (!meets) return Refuse(i, "does not lead towards the exit");
    const Linear& counter = counter_left ? *c.left : *c.right;
    const Linear& bound = counter_left ? *c.right : *c.left;
    // The payload finds neither of them in the stack pointer.
    if (counter.root == kStackPointer || bound.root == kStackPointer)
      return Refuse(i, "counts by the stack pointer");
    return TripCount{counter.root, bound.root, static_cast<int64_t>(bound.offset - counter.offset),
                     step, c.bytes};
  }

  const LoopCode& loop_;
  const std::vector<Effect> effects_;
  const Definitions definitions_;
  std::vector<Values> before_;
  Values after_;  // at every way back to the header
};

absl::Status CheckInstruction(const LoopInstruction& i, const Role& role) {
  if (i.Is(kStores | kLocked)) return Refuse(i, "it stores");
  if (i.Is(kStringOp)) return Refuse(i, "touches memory that its operands do not name");
  if (i.flow == LoopFlow::kCall || i.flow == LoopFlow::kEnd) return Refuse(i, "leaves the loop");
  if (i.Is(kX87) || ((i.reads | i.writes) & Bit(kOtherState)) != 0)
    return Refuse(i, "uses x87 or MMX state");
  if (i.Is(kDivides) && !i.Is(kVectorOp))
    return Refuse(i, "may fault on values that a variant computes");
  // RDTSC, RDRAND, RDPMC and the like: another run reads something else.
  if (absl::StartsWith(i.mnemonic, "rd")) return Refuse(i, "reads what no two runs agree on");
  if (role.fixed() && i.Is(kLoads))
    return Refuse(i, "reads from memory what decides a branch or an address");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TripCount> ProveEnds(const LoopCode& loop) {
  if (!loop.excluded.ranges.empty()) {
    return absl::FailedPreconditionError("it has paths that no copy can hold");
  }
  if (!loop.inner.empty())
    return Refuse(loop.instructions[loop.inner.front().header],
                  "heads a loop inside it, which is not proven to end");
  for (size_t i = 0; i < loop.instructions.size(); ++i)
    RETURN_IF_ERROR(CheckInstruction(loop.instructions[i], loop.roles[i]));
  const Prover prover(loop);
  absl::Status why = absl::FailedPreconditionError("it has no exit");
  for (uint32_t at = 0; at < loop.instructions.size(); ++at) {
    if (loop.exits[at].empty()) continue;
    absl::StatusOr<TripCount> trips = prover.FromBranch(at);
    if (trips.ok()) return trips;
    why = trips.status();
  }
  return why;
}

uint64_t Distance(const TripCount& trips, const std::array<uint64_t, 16>& registers) {
  const auto held = [&](int reg) {
    return reg == kNoRegister ? 0 : registers[static_cast<size_t>(reg)];
  };
  const uint64_t ahead =
      held(trips.bound) + static_cast<uint64_t>(trips.offset) - held(trips.counter);
  const uint64_t distance = trips.step > 0 ? ahead : 0 - ahead;
  return trips.bytes == 4 ? distance & 0xffffffff : distance;
}

}  // namespace perfd::agent
