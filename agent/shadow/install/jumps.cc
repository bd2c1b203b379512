#include "agent/shadow/install/jumps.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

bool InBody(const std::vector<CodeRange>& body, uint64_t address) {
  return std::any_of(body.begin(), body.end(), [&](const CodeRange& range) {
    return address >= range.low && address < range.high;
  });
}

// The next attempt finds out which loop it was and refuses that one.
absl::Status OfPatching(const absl::Status& status) {
  if (!absl::IsAborted(status)) return status;
  return absl::UnavailableError(absl::StrCat(
      "code has changed since it was decoded (a library was closed or replaced, or the "
      "program): ",
      status.message()));
}

// Where the jump leads. The same program may have the same loop after an exec, but nothing of ours.
ExpectBytesOp TrampolineOf(const std::vector<CodeCache>& caches, const PatchSite& site) {
  constexpr uint64_t kEnough = 32;
  const uint64_t at = site.built.trampoline;
  for (const CodeCache& cache : caches) {
    if (at < cache.address || at >= cache.address + cache.bytes.size()) continue;
    const auto begin = cache.bytes.begin() + static_cast<std::ptrdiff_t>(at - cache.address);
    const auto left = static_cast<uint64_t>(cache.bytes.end() - begin);
    return {{at}, {begin, begin + static_cast<std::ptrdiff_t>(std::min(kEnough, left))}};
  }
  return {{at}, {0}};  // never: it lies in one of them
}

std::vector<HoldOp> JumpOps(const std::vector<CodeCache>& caches, const PatchSite& site) {
  const PatchPlan& patch = site.built.patch;
  std::vector<HoldOp> ops(site.code.begin(), site.code.end());
  ops.push_back(TrampolineOf(caches, site));
  MoveThreadsOp move;
  for (const AddressPair& pair : site.built.live.address_map) {
    if (InBody(site.body, pair.original)) move.pairs.emplace_back(pair.original, pair.copy);
  }
  move.pairs_only = {{patch.address, patch.covered_end}};
  ops.push_back(std::move(move));
  ops.push_back(WriteOp{{patch.address}, {site.built.jump.begin(), site.built.jump.end()}, true});
  return ops;
}

// A stop whose tracer was ended may have come to its end or not: the text tells, if nobody else wrote there.
std::optional<bool> JumpIsIn(const Memory& memory, const PatchSite& site) {
  const auto& jump = site.built.jump;
  const auto& original = site.built.patch.original;
  std::vector<uint8_t> now(jump.size());
  if (!memory.Read(site.built.patch.address, now).ok()) return std::nullopt;
  if (std::equal(now.begin(), now.end(), jump.begin(), jump.end())) return true;
  if (std::equal(now.begin(), now.end(), original.begin(), original.end())) return false;
  return std::nullopt;
}

// Neighbours in one piece; each costs a little in a stop.
void AddConstants(std::vector<Constant> constants, std::vector<ExpectBytesOp>* pieces) {
  std::sort(constants.begin(), constants.end(),
            [](const Constant& a, const Constant& b) { return a.range < b.range; });
  uint64_t end = 0;
  for (const Constant& constant : constants) {
    const CodeRange& range = constant.range;
    if (range.high <= end) continue;
    if (range.low > end || end == 0) pieces->push_back({{range.low}, {}});
    const uint64_t known = end > range.low ? end - range.low : 0;
    std::vector<uint8_t>& bytes = pieces->back().bytes;
    bytes.insert(bytes.end(), constant.bytes.begin() + static_cast<std::ptrdiff_t>(known),
                 constant.bytes.end());
    end = range.high;
  }
}

}  // namespace

std::vector<ExpectBytesOp> CodeOf(const LoopCode& loop) {
  std::vector<ExpectBytesOp> pieces;
  uint64_t end = 0;
  for (const LoopInstruction& i : loop.instructions) {
    if (pieces.empty() || i.address != end) pieces.push_back({{i.address}, {}});
    const std::span<const uint8_t> code = i.original();
    pieces.back().bytes.insert(pieces.back().bytes.end(), code.begin(), code.end());
    end = i.end();
  }
  for (const ImportSlot& slot : loop.leaves.slots) {
    pieces.push_back({{slot.address}, std::vector<uint8_t>(sizeof(slot.value))});
    memcpy(pieces.back().bytes.data(), &slot.value, sizeof(slot.value));
  }
  AddConstants(loop.leaves.constants, &pieces);
  return pieces;
}

bool Holds(const Memory& memory, const std::vector<ExpectBytesOp>& code) {
  return std::all_of(code.begin(), code.end(), [&](const ExpectBytesOp& piece) {
    const auto bytes = memory.Read(piece.address.number, piece.bytes.size());
    return bytes.ok() && *bytes == piece.bytes;
  });
}

std::vector<HoldOp> ProtectOps(const std::vector<CodeCache>& caches, size_t first) {
  std::vector<HoldOp> ops;
  for (size_t i = first; i < caches.size(); ++i) {
    CallOp protect;
    protect.call = SYS_mprotect;
    protect.arguments = {OpValue{caches[i].address}, OpValue{caches[i].bound},
                         OpValue{PROT_READ | PROT_EXEC}};
    protect.expect = CallOp::Expect::kEqual;
    protect.expected = 0;
    ops.push_back(protect);
  }
  return ops;
}

absl::Status WriteJumps(InjectedRank& rank) {
  std::vector<HoldOp> ops = {RequireOwnStacksOp{}};
  for (HoldOp& op : ProtectOps(rank.code.caches, 0)) ops.push_back(std::move(op));
  for (const PatchSite& site : rank.code.sites) {
    if (!site.accepted()) continue;
    for (HoldOp& op : JumpOps(rank.code.caches, site)) ops.push_back(std::move(op));
  }
  return OfPatching(rank.hold.Stop(std::move(ops)).status());
}

absl::Status SetPatched(InjectedRank& rank, PatchSite& site, bool patched) {
  if (site.patched == patched) return absl::OkStatus();
  if (patched && site.released)
    return absl::FailedPreconditionError("it was released, and its code may be another loop's");
  if (patched) RETURN_IF_ERROR(rank.hold.MayAlter());
  const PatchPlan& patch = site.built.patch;
  const std::vector<uint8_t> original(patch.original.begin(), patch.original.end());
  const std::vector<uint8_t> jump(site.built.jump.begin(), site.built.jump.end());
  std::vector<HoldOp> ops;
  if (patched) {
    ops = {RequireOwnStacksOp{}};
    for (HoldOp& op : JumpOps(rank.code.caches, site)) ops.push_back(std::move(op));
  } else {
    RETURN_IF_ERROR(rank.region->SetMode(site.number(), kModeIdle));
    // Threads in the live copy leave it by themselves.
    ops = {ExpectBytesOp{{patch.address}, jump}, WriteOp{{patch.address}, original, true}};
  }
  const int64_t before = rank.hold.stop_ns();
  absl::Status status = OfPatching(
      rank.hold.Stop(std::move(ops), patched ? StopPurpose::kAlters : StopPurpose::kTakesOut)
          .status());
  if (status.ok()) {
    site.patched = patched;
  } else {
    const std::optional<bool> in = JumpIsIn(rank.memory, site);
    if (in) site.patched = *in;
    if (in && *in == patched) status = absl::OkStatus();
  }
  rank.hold.Audit(patched ? "install" : "restore", &site, rank.hold.stop_ns() - before, status);
  return status;
}

}  // namespace perfd::agent
