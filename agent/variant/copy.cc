#include "agent/variant/copy.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/variant/counting.h"
#include "agent/variant/edit_set.h"
#include "agent/variant/encode.h"
#include "agent/variant/flow/edges.h"
#include "agent/variant/roles.h"
#include "agent/variant/work.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

bool Observes(const VariantName& name) {
  return std::all_of(name.parts.begin(), name.parts.end(), [](const VariantPart& p) {
    return p.change == Change::kRef || p.change == Change::kCount || p.change == Change::kTrace;
  });
}

// Whether arithmetic that stays may see other values than in the loop, denormals among them.
bool ChangesValues(const VariantName& name) {
  constexpr Change kChanging[] = {Change::kFp,     Change::kDl1,    Change::kNoDiv,
                                  Change::kNoSqrt, Change::kNoRed,  Change::kNoCall,
                                  Change::kGroup,  Change::kRefFtz, Change::kRefCtl};
  return std::any_of(std::begin(kChanging), std::end(kChanging),
                     [&name](Change c) { return name.Has(c); });
}

bool ComputesFloats(const LoopCode& loop) {
  return std::any_of(loop.instructions.begin(), loop.instructions.end(),
                     [](const LoopInstruction& i) { return i.Is(kFloating | kX87); });
}

std::string WhyNoLeaf(const LoopCode& loop, uint64_t call) {
  for (const auto& [at, reason] : loop.leaves.refusals)
    if (at == call) return absl::StrCat(", which stays a call: ", reason);
  return "";
}

absl::Status CheckCalls(const LoopCode& loop, const VariantName& name) {
  for (uint32_t at : loop.calls) {
    const LoopInstruction& call = loop.instructions[at];
    if (!name.Has(Change::kNoCall)) {
      return Refuse(
          call, absl::StrCat(call.target == 0
                                 ? "calls through a pointer"
                                 : absl::StrCat("calls 0x", absl::Hex(call.Listed(call.target))),
                             WhyNoLeaf(loop, call.address)));
    }
    if (loop.roles[at].fixed()) return Refuse(call, "decides a branch or an address of the loop");
  }
  return absl::OkStatus();
}

// An integer division of what a deleted load would have brought traps.
absl::Status CheckDivisions(const LoopCode& loop, const EditSet& edits,
                            const std::vector<bool>& fed) {
  for (size_t n = 0; n < fed.size(); ++n) {
    const LoopInstruction& i = loop.instructions[n];
    const bool gone = edits.arithmetic[n] || edits.all[n] || edits.access[n];
    if (fed[n] && i.Is(kDivides) && !i.Is(kFloating) && !gone)
      return Refuse(i, "an integer division fed by a changed load could trap");
  }
  return absl::OkStatus();
}

absl::Status ApplyOne(const EditSet& edits, uint32_t at, Work* work) {
  const LoopInstruction& i = work->loop.instructions[at];
  if (edits.Any(at) && i.Is(kLocked))
    return Refuse(i, "a locked instruction cannot be taken apart");
  if (edits.all[at] || (edits.access[at] && edits.arithmetic[at])) {
    work->draft.slots[at].replacement = Delete(i);
    return absl::OkStatus();
  }
  if (edits.access[at]) {
    if (work->controlled[at]) return ControlOperands(work, at, false, std::nullopt);
    return DeleteMemory(work, at);
  }
  const bool pinned_later = edits.pin && i.Accesses() && !work->loop.roles[at].control;
  if (edits.load_only[at]) {
    if (i.Is(kScatters)) return Refuse(i, "a scatter has no load of the same addresses");
    return AccessOnly(work, at);
  }
  if (pinned_later) return absl::OkStatus();
  if (edits.arithmetic[at]) return DeleteArithmetic(work, at, std::nullopt);
  if (work->controlled[at]) return ControlOperands(work, at, true, std::nullopt);
  return absl::OkStatus();
}

absl::Status Apply(const EditSet& edits, Work* work) {
  const LoopCode& loop = work->loop;
  const std::vector<bool> fed = DivisionsFedBy(loop, TakenLoads(loop, edits));
  RETURN_IF_ERROR(CheckDivisions(loop, edits, fed));
  const std::vector<bool> operations = ControlledOperations(loop);
  bool control = work->name.Has(Change::kRefCtl);
  for (size_t n = 0; n < fed.size(); ++n)
    control = control || (operations[n] && fed[n] && !edits.arithmetic[n] && !edits.all[n]);
  for (size_t n = 0; n < fed.size(); ++n)
    work->controlled[n] = control && operations[n] && !edits.arithmetic[n] && !edits.all[n];
  for (uint32_t at = 0; at < fed.size(); ++at) RETURN_IF_ERROR(ApplyOne(edits, at, work));
  if (edits.pin) RETURN_IF_ERROR(PinAll(work, edits.arithmetic));
  for (uint32_t at : loop.calls) work->draft.slots[at].replacement = Delete(loop.instructions[at]);
  return RemoveAddedDependences(work);
}

// Every (100 / percent)-th access is repeated as a prefetch: a hit in L1. Source: Bendifallah 2015, 4.2 (dosing).
absl::Status AddPrefetches(int percent, Work* work, std::vector<Changed>* notes) {
  int due = 0;
  for (uint32_t at = 0; at < work->loop.instructions.size(); ++at) {
    const LoopInstruction& i = work->loop.instructions[at];
    if (!i.Accesses() || i.memory->vector_index) continue;
    due += percent;
    // An instruction that overwrites its own address leaves the dose to the next one.
    if (due < 100 || (i.writes & i.address_reads) != 0) continue;
    due -= 100;
    ASSIGN_OR_RETURN(Encoded prefetch, EncodePrefetch(i));
    Piece piece;
    piece.code = std::move(prefetch);
    work->draft.slots[at].after.push_back(std::move(piece));
    notes->push_back({i.address, i.text, absl::StrCat(i.text, "; prefetcht0 of the same line")});
  }
  return absl::OkStatus();
}

VariantName BaseOf(const Work& work, bool flush) {
  const bool control =
      std::find(work.controlled.begin(), work.controlled.end(), true) != work.controlled.end();
  if (control || work.name.Has(Change::kRefCtl)) return SingleVariant(Change::kRefCtl);
  return SingleVariant(flush ? Change::kRefFtz : Change::kRef);
}

// Offsets of the instructions from the header, in the order of the map.
std::vector<std::pair<uint64_t, uint64_t>> Offsets(const LoopCode& loop, const CodeCopy& copy) {
  uint64_t header = 0;
  for (const AddressPair& p : copy.address_map)
    if (p.original == loop.header) header = p.copy;
  std::vector<std::pair<uint64_t, uint64_t>> offsets;
  for (const AddressPair& p : copy.address_map) offsets.emplace_back(p.original, p.copy - header);
  return offsets;
}

void ListChanges(const Work& work, const std::vector<Changed>& notes, CodeCopy* copy) {
  std::vector<bool> all_changed(work.loop.instructions.size());
  for (uint32_t at = 0; at < work.loop.instructions.size(); ++at) {
    const LoopInstruction& i = work.loop.instructions[at];
    const std::optional<Replacement>& r = work.draft.slots[at].replacement;
    const bool changed = r && r->text != i.text;
    all_changed[at] = changed;
    if (changed) copy->changed.push_back({i.address, i.text, r->text});
    copy->edits.kept += !changed && IsOfItsClass(work.loop, work.name, at);
  }
  copy->changed.insert(copy->changed.end(), notes.begin(), notes.end());
  copy->edits.changed = static_cast<int32_t>(copy->changed.size());
  const bool asked = work.name.Has(Change::kLs) || work.name.Has(Change::kFp);
  copy->edits.unchained = asked && !CutsChain(work.loop, all_changed);
  copy->pairs.chains_cut = MemoryChainsCut(work.loop, all_changed);
}

}  // namespace

absl::StatusOr<Work> ChangeLoop(const LoopCode& loop, const VariantName& name,
                                const CopyTarget& target, std::vector<Changed>* notes) {
  RETURN_IF_ERROR(CheckCalls(loop, name));
  ASSIGN_OR_RETURN(const EditSet edits, MakeEditSet(loop, name));
  Work work = StartWork(loop, name, target);
  if (!Observes(name)) RETURN_IF_ERROR(Apply(edits, &work));
  if (name.Has(Change::kPrefetch))
    RETURN_IF_ERROR(AddPrefetches(name.Parameter(Change::kPrefetch), &work, notes));
  return work;
}

absl::StatusOr<CodeCopy> FinishCopy(const LoopCode& code, const Draft& draft, const Draft& plain,
                                    const Work& work, const std::vector<Changed>& notes) {
  ASSIGN_OR_RETURN(CodeCopy copy, Assemble(code, draft, work.target));
  ListChanges(work, notes, &copy);
  copy.references = References(code, draft);
  copy.edits.accesses = static_cast<int32_t>(References(work.loop).size());
  copy.edits.pinned = work.pinned;
  copy.self_pointers = work.self_pointers;
  if (work.loop.taken_apart) copy.pairs.taken_apart = *work.loop.taken_apart;
  AddPairs(work.pairs.taken_apart, &copy.pairs.taken_apart);
  copy.flush_denormals = ChangesValues(work.name) && ComputesFloats(work.loop);
  copy.base = BaseOf(work, copy.flush_denormals);
  ASSIGN_OR_RETURN(const CodeCopy ref, Assemble(code, plain, work.target));
  copy.same_layout = Offsets(code, ref) == Offsets(code, copy);
  return copy;
}

absl::StatusOr<CodeCopy> MakeCopy(const LoopCode& loop, const VariantName& name,
                                  const CopyTarget& target) {
  std::vector<Changed> notes;
  ASSIGN_OR_RETURN(Work work, ChangeLoop(loop, name, target, &notes));
  if (name.Has(Change::kTrace)) RETURN_IF_ERROR(AddTracing(loop, &work.draft));
  if (Counts(name)) AddCounting(loop, target, false, &work.draft);
  Draft plain;
  plain.slots.resize(loop.instructions.size());
  return FinishCopy(loop, work.draft, plain, work, notes);
}

bool Counts(const VariantName& name) {
  return name.Has(Change::kCount) || name.Has(Change::kTrace);
}

bool IsIdle(const VariantName& name, const CodeCopy& copy) {
  constexpr auto kAlwaysAnswer =
      std::to_array({Change::kRef, Change::kRefFtz, Change::kRefCtl, Change::kCount, Change::kTrace,
                     Change::kLs, Change::kFp, Change::kDl1, Change::kCtrl});
  return copy.changed.empty() && std::none_of(kAlwaysAnswer.begin(), kAlwaysAnswer.end(),
                                              [&](Change change) { return name.Has(change); });
}

uint64_t CopyBound(const LoopCode& loop, const VariantName& name) {
  // Per instruction: tracing code (moves, two comparisons and a count, for each lane of a gather), or three long
  // instructions; a pad.
  constexpr uint64_t kTraced = 256;
  constexpr uint64_t kTracedVector = 3072;
  // What counts the passes of a loop inside.
  constexpr uint64_t kInnerCount = 64;
  uint64_t bound = 256 + kInnerCount * loop.inner.size();
  for (const LoopInstruction& i : loop.instructions) {
    const bool vector = i.memory && i.memory->vector_index;
    bound += !name.Has(Change::kTrace) ? 64 : vector ? kTracedVector : kTraced;
  }
  return bound;
}

}  // namespace perfd::agent
