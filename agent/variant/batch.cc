#include "agent/variant/batch.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/variant/counting.h"
#include "agent/variant/flow/body.h"
#include "agent/variant/flow/dataflow.h"
#include "agent/variant/flow/edges.h"
#include "agent/variant/flow/excluded_path.h"
#include "agent/variant/flow/nest.h"
#include "agent/variant/roles.h"
#include "agent/variant/symbolic.h"
#include "agent/variant/work.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr size_t kMostInstructions = 600;  // every variant holds them all

absl::Status CannotGoOn(const LoopCode& around) {
  return absl::FailedPreconditionError(
      absl::StrCat("what lies between two instances cannot be copied: ",
                   around.excluded.texts.empty() ? "the loop around it is not in one piece"
                                                 : around.excluded.texts.front()));
}

// Where each instruction of `loop` stands in `around`.
absl::StatusOr<std::vector<uint32_t>> SitesOf(const LoopCode& loop, const LoopCode& around) {
  std::vector<uint32_t> places;
  for (const LoopInstruction& i : loop.instructions) {
    const int at = InstructionAt(around, i.address);
    if (at < 0) return CannotGoOn(around);
    places.push_back(static_cast<uint32_t>(at));
  }
  return places;
}

// What makes the addresses of the code around. Pinning or deleting a load of it would send that code elsewhere, for its own
// accesses are never pinned.
Slice AddressesAround(const LoopCode& around, const std::vector<uint32_t>& places) {
  const std::vector<Effect> effects = Effects(around);
  const Definitions definitions(around, effects);
  std::vector<bool> inside(around.instructions.size());
  for (uint32_t at : places) inside[at] = true;
  std::vector<uint32_t> seeds;
  for (uint32_t at = 0; at < inside.size(); ++at) {
    if (inside[at]) continue;
    for (RegisterSet set = around.instructions[at].address_reads; set != 0; set &= set - 1) {
      const Definitions::Reach& reach = definitions.Of(at, std::countr_zero(set));
      seeds.insert(seeds.end(), reach.from.begin(), reach.from.end());
    }
  }
  return BackwardSlice(around, seeds);
}

// No variant may change what decides where the code around goes, or which memory it touches; nor use a register that it reads.
void ExtendBlackList(const LoopCode& around, const std::vector<uint32_t>& places, LoopCode* loop) {
  const Slice addresses = AddressesAround(around, places);
  for (size_t n = 0; n < places.size(); ++n) {
    loop->roles[n].control =
        loop->roles[n].control || around.roles[places[n]].control || addresses.in[places[n]];
    loop->roles[n].address = loop->roles[n].address || around.roles[places[n]].address;
  }
  if (!loop->taken_apart) return;
  AddPairs(*around.taken_apart, &*loop->taken_apart);
  AddPairs(addresses.taken_apart, &*loop->taken_apart);
}

// Groups are those of the loop; what the code around accesses belongs to none.
void Regroup(const LoopCode& loop, std::vector<Reference>* references) {
  for (Reference& reference : *references) {
    const int at = InstructionAt(loop, reference.instruction);
    reference.group = at < 0 ? -1 : loop.roles[static_cast<size_t>(at)].group;
  }
}

}  // namespace

absl::StatusOr<BatchCode> DecodeBatch(const LoopCode& loop, const LoopBytes& bytes) {
  BatchCode batch;
  batch.loop = loop;
  LoopCode& around = batch.around;
  around.header = loop.header;
  RETURN_IF_ERROR(ReadBody(bytes, &around));
  ExcludePaths(&around);
  if (around.instructions.size() > kMostInstructions)
    return absl::FailedPreconditionError(
        absl::StrCat("the loop around it has ", around.instructions.size(),
                     " instructions, chains at most ", kMostInstructions));
  const int turn = InstructionAt(around, bytes.header);
  if (turn < 0) return CannotGoOn(around);
  batch.turn = static_cast<uint32_t>(turn);
  ASSIGN_OR_RETURN(const std::vector<uint32_t> places, SitesOf(loop, around));
  RETURN_IF_ERROR(BuildEdges(&around));
  around.inner = InnerLoops(around);
  if (batch.turn == around.entry || !around.calls.empty()) return CannotGoOn(around);
  around.roles.resize(around.instructions.size());
  AssignGroups(&around);
  AssignRoles(&around);
  around.live.at_entry = LiveBefore(around, Effects(around), ~RegisterSet{0})[around.entry];
  const std::vector<RegisterSet> live = LiveBefore(around, Effects(around), 0);
  if ((live[batch.turn] & kStatusFlags) != 0)
    return Refuse(around.instructions[batch.turn], "flags are in use where instances are counted");
  // Of a shadow nothing follows the loop around; and DEC leaves the carry flag alone (Intel SDM vol. 2, DEC).
  constexpr RegisterSet kChanged = kStatusFlags & ~(RegisterSet{1} << kCarryFlag);
  batch.may_run_live = (LiveBefore(around, Effects(around), kChanged)[batch.turn] & kChanged) == 0;
  batch.loop.live.beyond.assign(places.size(), 0);
  for (size_t n = 0; n < places.size(); ++n) {
    for (uint32_t to : around.next[places[n]]) batch.loop.live.beyond[n] |= live[to];
  }
  ExtendBlackList(around, places, &batch.loop);
  return batch;
}

std::optional<BatchCode> TakeApart(const BatchCode& batch) {
  const absl::StatusOr<std::vector<uint32_t>> places = SitesOf(batch.loop, batch.around);
  if (!places.ok()) return std::nullopt;
  BatchCode apart = batch;
  apart.loop.taken_apart.emplace();
  apart.around.taken_apart.emplace();
  AssignRoles(&apart.loop);
  AssignRoles(&apart.around);
  ExtendBlackList(apart.around, *places, &apart.loop);
  return FreesMore(apart.loop, batch.loop) ? std::optional(std::move(apart)) : std::nullopt;
}

absl::StatusOr<CodeCopy> MakeBatchCopy(const BatchCode& batch, const VariantName& name,
                                       const CopyTarget& target) {
  std::vector<Changed> notes;
  ASSIGN_OR_RETURN(Work work, ChangeLoop(batch.loop, name, target, &notes));
  if (!work.draft.preparation.empty())
    return Refuse(batch.loop.instructions[batch.loop.entry],
                  "this variant prepares each instance, which a chain of them cannot");
  ASSIGN_OR_RETURN(const std::vector<uint32_t> places, SitesOf(batch.loop, batch.around));
  Draft draft, plain;
  draft.slots.resize(batch.around.instructions.size());
  plain.slots.resize(batch.around.instructions.size());
  for (size_t n = 0; n < places.size(); ++n) draft.slots[places[n]] = work.draft.slots[n];
  if (name.Has(Change::kTrace)) RETURN_IF_ERROR(AddTracing(batch.around, &draft));
  if (Counts(name)) AddCounting(batch.around, target, true, &draft);
  const uint64_t turn = batch.around.instructions[batch.turn].address;
  CountInstances(batch.turn, turn, target, &draft);
  CountInstances(batch.turn, turn, target, &plain);
  ASSIGN_OR_RETURN(CodeCopy copy, FinishCopy(batch.around, draft, plain, work, notes));
  Regroup(batch.loop, &copy.references);
  const auto pair = std::find_if(copy.address_map.begin(), copy.address_map.end(),
                                 [turn](const AddressPair& p) { return p.original == turn; });
  if (pair != copy.address_map.end()) copy.places.turn = pair->copy;
  return copy;
}

}  // namespace perfd::agent
