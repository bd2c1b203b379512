#include "agent/shadow/cache_builder.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "absl/strings/str_cat.h"
#include "agent/shadow/payload_blob.h"
#include "agent/shadow/protocol.h"
#include "agent/shadow/region_layout.h"
#include "agent/shadow/trampoline.h"
#include "agent/variant/decode.h"
#include "agent/variant/flow/leaf_calls.h"
#include "agent/variant/flow/leaf_pool.h"
#include "agent/variant/moved.h"
#include "agent/variant/recovery/in_situ.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kLine = 64;
constexpr uint64_t kSlack = 2 * kLine;  // alignment of one copy

std::vector<uint64_t> ExitTargets(const LoopCode& loop) {
  std::set<uint64_t> targets;
  for (const std::vector<uint64_t>& exits : loop.exits) targets.insert(exits.begin(), exits.end());
  return {targets.begin(), targets.end()};
}

// And where it is left at its count.
std::vector<uint64_t> BatchExits(const BatchCode& batch) {
  std::vector<uint64_t> targets = ExitTargets(batch.around);
  targets.push_back(batch.around.instructions[batch.turn].address);
  return targets;
}

// In the code of a leaf nothing on the stack says where it was called from: such a thread is waited for.
void AddPairs(const LoopCode& loop, const CodeCopy& copy, std::vector<AddressPair>* pairs) {
  for (const AddressPair& pair : copy.address_map)
    if (!InLeaf(loop, pair.original)) pairs->push_back(pair);
}

// A branch besides the one that closes the loop: data may decide it.
bool Decides(const LoopCode& loop) {
  return std::count_if(loop.instructions.begin(), loop.instructions.end(),
                       [](const auto& i) { return i.flow == LoopFlow::kBranch; }) > 1;
}

// Of all variants, alone or over many instances.
uint64_t VariantsBound(const LoopToInject& loop, const LoopCode& code, uint64_t places) {
  uint64_t bound = 0;
  for (const VariantName& name : NamesOf(loop)) {
    const uint64_t copies = Counts(name) ? 1 : places + 1;  // the other one counts
    bound += copies * (CopyBound(code, name) + kSlack);
  }
  // Bases are made where a variant needs them.
  for (Change base : {Change::kRefFtz, Change::kRefCtl})
    bound += places * (CopyBound(code, SingleVariant(base)) + kSlack);
  return bound;
}

// The same again, and one traced copy of each.
uint64_t ApartBound(const LoopToInject& loop, const LoopCode& code, uint64_t places) {
  const uint64_t traced = CopyBound(code, SingleVariant(Change::kTrace)) + kSlack;
  return VariantsBound(loop, code, places) + NamesOf(loop).size() * traced;
}

uint64_t LoopBound(const LoopToInject& loop, uint64_t places) {
  const VariantName ref = SingleVariant(Change::kRef);
  uint64_t bound =
      kTrampolineBytes * (1 + ExitTargets(loop.code).size()) + LeafPoolBytes(loop.code) + kSlack;
  if (loop.batch.ok()) {
    bound += kTrampolineBytes * BatchExits(*loop.batch).size() +
             CopyBound(loop.batch->around, ref) + kSlack;
  }
  bound += 2 * (CopyBound(loop.code, ref) + kSlack) +
           VariantsBound(loop, loop.code, Decides(loop.code) ? places : 1);
  if (loop.apart) bound += ApartBound(loop, *loop.apart, Decides(loop.code) ? places : 1);
  if (loop.batch_apart) bound += ApartBound(loop, loop.batch_apart->around, places);
  return loop.batch.ok() ? bound + VariantsBound(loop, loop.batch->around, places) : bound;
}

}  // namespace

VariantName Counted(VariantName name) {
  name.parts.insert(name.parts.begin(), {Change::kCount, 0});
  return name;
}

VariantName Traced(VariantName name) {
  name.parts.insert(name.parts.begin(), {Change::kTrace, 0});
  return name;
}

std::vector<VariantName> NamesOf(const LoopToInject& loop) {
  std::vector<VariantName> names;
  for (Change change : {Change::kRef, Change::kCount, Change::kTrace})
    names.push_back(SingleVariant(change));
  for (const VariantName& name : loop.variants) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

uint64_t CacheBound(const std::vector<const LoopToInject*>& loops, int32_t places) {
  uint64_t bound = PayloadBlob().size() + 2 * kLine;
  for (const LoopToInject* loop : loops) bound += LoopBound(*loop, static_cast<uint64_t>(places));
  return RoundToPage(bound);
}

absl::Status RedirectExits(CodeCopy* copy, const std::vector<ExitAddress>& places) {
  const uint64_t end = copy->address + copy->bytes.size();
  for (uint64_t at = copy->address; at < end;) {
    const uint64_t offset = at - copy->address;
    auto step = DecodeFlow(std::span(copy->bytes).subspan(offset), at);
    if (!step || step->length == 0)
      return absl::InternalError(absl::StrCat("no instruction at 0x", absl::Hex(at)));
    at += step->length;
    if (step->flow != LoopFlow::kBranch && step->flow != LoopFlow::kJump) continue;
    if (step->target >= copy->address && step->target < end) continue;
    auto place = std::find_if(places.begin(), places.end(),
                              [&](const ExitAddress& p) { return p.target == step->target; });
    if (place == places.end() || step->length < 5)
      return absl::FailedPreconditionError(
          absl::StrCat("an exit to 0x", absl::Hex(step->target), " cannot be timed"));
    const auto distance = static_cast<int64_t>(place->place - at);
    if (distance != static_cast<int32_t>(distance))
      return absl::OutOfRangeError("timed exit out of reach");
    for (int i = 0; i < 4; ++i) {
      copy->bytes[offset + step->length - 4 + static_cast<size_t>(i)] =
          static_cast<uint8_t>(distance >> (8 * i));
    }
  }
  return absl::OkStatus();
}

CacheBuilder::CacheBuilder(uint64_t address, uint64_t bound, int32_t places)
    : address_(address), bound_(bound), places_(places) {
  std::span<const uint8_t> blob = PayloadBlob();
  bytes_.assign(blob.begin(), blob.end());
  empty_copy_ = Reserve(kLine);
  auto jump = EmitJump(empty_copy_, address_ + kPayloadExitStub);
  if (jump.ok()) std::copy(jump->begin(), jump->end(), bytes_.end() - kLine);
}

// The rest is filled with INT3: nothing ever runs there.
uint64_t CacheBuilder::Reserve(uint64_t bytes) {
  bytes_.resize((bytes_.size() + kLine - 1) / kLine * kLine, 0xcc);
  const uint64_t at = address_ + bytes_.size();
  bytes_.resize(bytes_.size() + bytes, 0xcc);
  return at;
}

absl::Status CacheBuilder::Write(uint64_t address, const std::vector<uint8_t>& bytes) {
  const uint64_t offset = address - address_;
  if (offset + bytes.size() > bound_) return absl::InternalError("the code cache is too small");
  if (offset + bytes.size() > bytes_.size()) bytes_.resize(offset + bytes.size(), 0xcc);
  std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
  return absl::OkStatus();
}

absl::StatusOr<CodeCopy> CacheBuilder::Copy(const LoopCode& loop, const VariantName& name,
                                            Exits exits) {
  ASSIGN_OR_RETURN(CodeCopy copy, MakeCopy(loop, name, PlaceOfNext(exits)));
  RETURN_IF_ERROR(Write(copy.address, copy.bytes));
  return copy;
}

CopyTarget CacheBuilder::PlaceOfNext(Exits exits) const {
  const uint64_t at = address_ + (bytes_.size() + kLine - 1) / kLine * kLine;
  return {at, exits, address_ + kPayloadExitStub};
}

absl::Status CacheBuilder::BuildLive(const LoopToInject& loop, const SiteAddresses& site,
                                     BuiltLoop* built) {
  ASSIGN_OR_RETURN(built->patch, PlanPatch(loop.code));
  const uint64_t last = built->patch.address + kJumpBytes - 1;
  if (built->patch.address / kRegionPage != last / kRegionPage)
    return absl::FailedPreconditionError(
        "the jump at its entry would cross a page and could not be written at once");
  built->trampoline = Reserve(kTrampolineBytes);
  ASSIGN_OR_RETURN(built->live, Copy(loop.code, SingleVariant(Change::kRef), Exits::kOriginalText));
  if (absl::Status timed = BuildTimed(loop, site.site, built); !timed.ok()) {
    built->timed.reset();
    built->untimed = std::string(timed.message());
  }
  if (!BuildTimedBatch(loop, site, built).ok()) built->timed_batch.reset();
  AddPairs(loop.code, built->live, &built->pairs);
  if (built->timed) AddPairs(loop.code, *built->timed, &built->pairs);
  if (built->timed_batch) AddPairs(loop.batch->around, built->timed_batch->copy, &built->pairs);
  const uint64_t timed = built->timed ? built->timed->entry : built->live.entry;
  const uint64_t batch = built->timed_batch ? built->timed_batch->copy.entry : built->live.entry;
  ASSIGN_OR_RETURN(std::vector<uint8_t> code,
                   EmitTrampoline({built->trampoline, site.site, address_ + kPayloadSlowEntry,
                                   built->live.entry, timed, batch}));
  RETURN_IF_ERROR(Write(built->trampoline, code));
  ASSIGN_OR_RETURN(built->jump, built->patch.Jump(built->trampoline));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ExitAddress>> CacheBuilder::TimedExits(
    const std::vector<uint64_t>& targets, uint64_t site) {
  std::vector<ExitAddress> places;
  for (uint64_t target : targets) {
    const uint64_t at = Reserve(kTrampolineBytes);
    ASSIGN_OR_RETURN(std::vector<uint8_t> code,
                     EmitTimedExit({at, site, address_ + kPayloadSlowEntry, target}));
    RETURN_IF_ERROR(Write(at, code));
    places.push_back({target, at});
  }
  return places;
}

absl::Status CacheBuilder::BuildTimed(const LoopToInject& loop, uint64_t site, BuiltLoop* built) {
  ASSIGN_OR_RETURN(const std::vector<ExitAddress> places, TimedExits(ExitTargets(loop.code), site));
  ASSIGN_OR_RETURN(built->timed,
                   Copy(loop.code, SingleVariant(Change::kRef), Exits::kOriginalText));
  RETURN_IF_ERROR(RedirectExits(&*built->timed, places));
  return Write(built->timed->address, built->timed->bytes);
}

// Where the word that counts its turns is out of reach, there is none.
absl::Status CacheBuilder::BuildTimedBatch(const LoopToInject& loop, const SiteAddresses& site,
                                           BuiltLoop* built) {
  RETURN_IF_ERROR(loop.batch.status());
  if (site.turns == 0 || !loop.batch->may_run_live)
    return absl::FailedPreconditionError("its turns cannot be counted in the rank");
  ASSIGN_OR_RETURN(const std::vector<ExitAddress> places,
                   TimedExits(BatchExits(*loop.batch), site.site));
  CopyTarget target = PlaceOfNext(Exits::kOriginalText);
  target.counter = site.turns + offsetof(LiveTurns, left);
  TimedBatch& batch = built->timed_batch.emplace();
  ASSIGN_OR_RETURN(batch.copy, MakeBatchCopy(*loop.batch, SingleVariant(Change::kRef), target));
  for (const LoopInstruction& i : loop.batch->around.instructions)
    batch.text.push_back({i.address, {i.original().begin(), i.original().end()}});
  RETURN_IF_ERROR(RedirectExits(&batch.copy, places));
  return Write(batch.copy.address, batch.copy.bytes);
}

absl::Status CacheBuilder::BuildVariants(const LoopToInject& loop, BuiltLoop* built) {
  constexpr size_t kAlways = 3;
  InstalledLoop& out = built->installed;
  std::vector<VariantName> names = NamesOf(loop);
  for (size_t i = 0; i < names.size(); ++i) {
    const VariantName name = names[i];
    absl::StatusOr<CodeCopy> copy = Copy(loop.code, name, Exits::kStub);
    if (!copy.ok() && i < kAlways)
      return absl::FailedPreconditionError(
          absl::StrCat(name.Text(), ": ", copy.status().message()));
    if (!copy.ok()) {
      out.refusals.push_back({name.Text(), 0, std::string(copy.status().message()), 1});
      continue;
    }
    const bool has_base = std::find(names.begin(), names.end(), copy->base) != names.end();
    if (!has_base && !copy->base.parts.empty()) names.push_back(copy->base);
    out.names.push_back(name);
    out.copies.push_back(*std::move(copy));
  }
  AddBasesOfApart(loop, kAlways, &out);
  BuildCounted(loop, kAlways, &out);
  BuildBatched(loop, kAlways, &out);
  BuildApart(loop, kAlways, &out);
  BuildApartBatches(loop, kAlways, &out);
  BuildSites(loop, &out);
  out.excluded_paths = loop.code.excluded.texts;
  for (const LoopInstruction& instruction : loop.code.instructions)
    out.texts.emplace_back(instruction.address, instruction.text);
  return absl::OkStatus();
}

// Of everything but bases, which compute what the loop computes. Where none can be made, the variant stays unchecked.
void CacheBuilder::BuildCounted(const LoopToInject& loop, size_t first, InstalledLoop* out) {
  constexpr size_t kMostSelfPointers =
      16;  // they share the room of a plan with those of all others
  const std::vector<VariantName> names = out->names;
  for (size_t i = first; i < names.size(); ++i) {
    const VariantName& name = names[i];
    const bool base = name.Has(Change::kRefFtz) || name.Has(Change::kRefCtl);
    if (base || Counts(name)) continue;
    absl::StatusOr<CodeCopy> copy = Copy(loop.code, Counted(name), Exits::kStub);
    if (!copy.ok() || copy->self_pointers.size() > kMostSelfPointers) continue;
    out->names.push_back(Counted(name));
    out->copies.push_back(*std::move(copy));
  }
}

absl::StatusOr<CodeCopy> CacheBuilder::Batch(const BatchCode& batch, const VariantName& name) {
  ASSIGN_OR_RETURN(CodeCopy copy, MakeBatchCopy(batch, name, PlaceOfNext(Exits::kStub)));
  RETURN_IF_ERROR(Write(copy.address, copy.bytes));
  return copy;
}

// The first `needed` are what every chain needs: without them there is none.
void CacheBuilder::BuildBatched(const LoopToInject& loop, size_t needed, InstalledLoop* out) {
  out->batches = loop.batch.status();
  for (size_t i = 0; i < out->names.size() && out->batches.ok(); ++i) {
    out->batched.push_back(Batch(*loop.batch, out->names[i]));
    if (i < needed) out->batches = out->batched.back().status();
  }
}

// A variant that may change more may have another base than one that may not.
void CacheBuilder::AddBasesOfApart(const LoopToInject& loop, size_t first, InstalledLoop* out) {
  std::vector<const LoopCode*> codes;
  if (loop.apart) codes.push_back(&*loop.apart);
  if (loop.batch_apart) codes.push_back(&loop.batch_apart->loop);
  const size_t count = out->names.size();
  for (const LoopCode* code : codes) {
    for (size_t i = first; i < count; ++i) {
      const absl::StatusOr<CodeCopy> made =
          MakeCopy(*code, out->names[i], PlaceOfNext(Exits::kStub));
      const std::vector<VariantName>& names = out->names;
      if (!made.ok() || std::find(names.begin(), names.end(), made->base) != names.end()) continue;
      absl::StatusOr<CodeCopy> base = Copy(loop.code, made->base, Exits::kStub);
      if (!base.ok()) continue;
      out->names.push_back(made->base);
      out->copies.push_back(*std::move(base));
    }
  }
}

void CacheBuilder::BuildApart(const LoopToInject& loop, size_t first, InstalledLoop* out) {
  if (!loop.apart) return;
  ApartCopies& set = out->apart.emplace();
  for (size_t i = 0; i < out->names.size(); ++i) {
    const VariantName& name = out->names[i];
    const bool changes = i >= first;
    set.copies.push_back(changes ? Copy(*loop.apart, name, Exits::kStub)
                                 : absl::StatusOr<CodeCopy>(out->copies[i]));
    const bool check = changes && !Counts(name) && set.copies.back().ok();
    set.traced.push_back(check ? Copy(*loop.apart, Traced(name), Exits::kStub)
                               : absl::UnimplementedError("it needs no check"));
  }
}

void CacheBuilder::BuildApartBatches(const LoopToInject& loop, size_t first, InstalledLoop* out) {
  if (!loop.batch_apart || !out->batches.ok()) return;
  ApartCopies& set = out->batched_apart.emplace();
  for (size_t i = 0; i < out->names.size(); ++i) {
    const VariantName& name = out->names[i];
    const bool changes = i >= first;
    set.copies.push_back(changes ? Batch(*loop.batch_apart, name) : out->batched[i]);
    const bool check = changes && !Counts(name) && set.copies.back().ok();
    set.traced.push_back(check ? Batch(*loop.batch_apart, Traced(name))
                               : absl::UnimplementedError("it needs no check"));
  }
}

// Of all that is timed and meets branches that data may decide: those of the loop, or how often each instance goes round.
void CacheBuilder::BuildSites(const LoopToInject& loop, InstalledLoop* out) {
  const bool alone = Decides(loop.code);
  for (size_t i = 0; i < out->names.size(); ++i) {
    if (Counts(out->names[i])) continue;
    if (alone) Repeat(&out->copies[i]);
    if (out->batches.ok() && out->batched[i].ok()) Repeat(&*out->batched[i]);
    if (alone && out->apart && out->apart->copies[i].ok()) Repeat(&*out->apart->copies[i]);
    if (out->batched_apart && out->batched_apart->copies[i].ok())
      Repeat(&*out->batched_apart->copies[i]);
  }
}

// What cannot be moved stays where it is, alone.
void CacheBuilder::Repeat(CodeCopy* copy) {
  for (int32_t place = 1; place < places_; ++place) {
    const uint64_t end = address_ + bytes_.size();
    const uint64_t shift = (end - copy->address + kLine - 1) / kLine * kLine;
    const absl::StatusOr<std::vector<uint8_t>> moved = MovedBytes(*copy, shift);
    if (!moved.ok() || !Write(copy->address + shift, *moved).ok()) return;
    copy->places.shifts.push_back(shift);
  }
}

void CacheBuilder::JudgeInSitu(const LoopToInject& loop, bool recovery, BuiltLoop* built) const {
  InstalledLoop& out = built->installed;
  out.in_situ_copies.assign(out.copies.size(), false);
  if (!recovery) {
    out.in_situ =
        absl::PermissionDeniedError("this site does not allow it (perf-agent --allow-recovery)");
    return;
  }
  if (!built->timed) {
    out.in_situ = absl::FailedPreconditionError(built->untimed);
    return;
  }
  if (!loop.code.leaves.ranges.empty()) {
    out.in_situ = absl::FailedPreconditionError("it calls a function");
    return;
  }
  const absl::StatusOr<TripCount> trips = ProveEnds(loop.code);
  out.in_situ = trips.status();
  if (!trips.ok()) return;
  built->trips = *trips;
  for (size_t i = 0; i < out.copies.size(); ++i)
    out.in_situ_copies[i] = CheckInSitu(loop.code, out.copies[i], address_ + kPayloadExitStub).ok();
  // REF, with which everything is compared.
  if (!out.in_situ_copies.front())
    out.in_situ = CheckInSitu(loop.code, out.copies.front(), address_ + kPayloadExitStub);
}

absl::Status CacheBuilder::BuildPool(LoopToInject* loop) {
  const uint64_t size = LeafPoolBytes(loop->code);
  if (size == 0) return absl::OkStatus();
  const uint64_t at = Reserve(size);
  if (loop->apart) UseLeafPool(at, &*loop->apart);
  return Write(at, UseLeafPool(at, &loop->code));
}

BuiltLoop CacheBuilder::Build(LoopToInject loop, const SiteAddresses& site, bool recovery) {
  BuiltLoop built;
  const std::vector<uint8_t> before = bytes_;
  built.installed.status = BuildPool(&loop);
  if (built.installed.status.ok()) built.installed.status = BuildLive(loop, site, &built);
  if (built.installed.status.ok()) built.installed.status = BuildVariants(loop, &built);
  if (!built.installed.status.ok()) bytes_ = before;
  if (built.installed.status.ok()) JudgeInSitu(loop, recovery, &built);
  return built;
}

}  // namespace perfd::agent
