#include "agent/shadow/injector/process_injector.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/forking/preconditions.h"
#include "agent/shadow/restore.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
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

// For the audit log: nothing was written where there was nothing to write to.
absl::Status OfRestoring(const RestoreResult& result, const absl::Status& status) {
  if (!status.ok() || result.found) return status;
  return absl::NotFoundError(result.ended ? "the process has ended" : "nothing of ours was in it");
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankInjector>> RankInjector::Open(const RankInfo& rank,
                                                                 InjectorOptions options) {
  ASSIGN_OR_RETURN(std::unique_ptr<ProcessInjector> injector,
                   ProcessInjector::Open(rank, std::move(options)));
  return injector;
}

absl::StatusOr<std::unique_ptr<ProcessInjector>> ProcessInjector::Open(const RankInfo& rank,
                                                                       InjectorOptions options) {
  if (options.answers) RETURN_IF_ERROR(options.answers(rank.pid));
  ASSIGN_OR_RETURN(Memory memory, Memory::Open(rank.pid, rank.start_ticks));
  // After the opening: what is open stays that address space, whatever the process becomes.
  ASSIGN_OR_RETURN(const Admission now, ReadAdmission(ProcFs(), rank.pid));
  if (!options.admitted.has_value()) options.admitted = now;
  RETURN_IF_ERROR(CheckUnchanged(*options.admitted, now, rank.pid));
  // Before the memory is walked through: that takes longer still.
  RETURN_IF_ERROR(CheckMappings(ProcFs(), rank.pid, options.max_stop_ns));
  MemoryWalk probe(rank.pid);
  ASSIGN_OR_RETURN(const MemoryFacts facts, probe.Facts());
  ASSIGN_OR_RETURN(RankHazards hazards, ReadHazards(rank.pid, facts, options.ranks_at_once));
  RETURN_IF_ERROR(JudgeHazards(hazards));
  RETURN_IF_ERROR(HealBefore(rank, options));
  return std::unique_ptr<ProcessInjector>(
      new ProcessInjector(rank, std::move(options), std::move(memory), std::move(probe)));
}

ProcessInjector::ProcessInjector(RankInfo rank, InjectorOptions options, Memory memory,
                                 MemoryWalk probe)
    : rank_(std::move(rank)),
      options_(std::move(options)),
      memory_(std::move(memory)),
      memory_walk_(std::move(probe)),
      shadow_cost_(CopyFaultNs()) {
  injection_.pid = rank_.pid;
  injection_.start_ticks = rank_.start_ticks;
  injection_.boot_id = BootId();
}

ProcessInjector::~ProcessInjector() {
  // Once Uninstall has been tried the tracer may be gone; what is left is in the journal.
  if (installed_ && !uninstall_tried_) Uninstall().IgnoreError();
}

absl::StatusOr<HoldReply> ProcessInjector::Hold(std::vector<HoldOp> ops, bool takes_out) {
  constexpr int64_t kPatienceNs = 2 * kNsPerSecond;
  std::vector<int64_t> stops;
  HoldRequest request{rank_.pid, rank_.start_ticks, options_.max_stop_ns, std::move(ops)};
  if (!takes_out) request.admitted = options_.admitted;
  const int64_t begin = SystemClock().MonotonicNs();
  auto reply = HoldPatiently(*options_.tracer, request, begin + kPatienceNs, &stops);
  CountStops(stops);
  if (!reply.ok() || CallMayBeLost(*reply)) tracer_died_ = true;
  RETURN_IF_ERROR(reply.status());
  RETURN_IF_ERROR(reply->status);
  return reply;
}

void ProcessInjector::CountStops(const std::vector<int64_t>& stops_ns) {
  for (int64_t ns : stops_ns) {
    ++cost_.stops;
    cost_.stop_ns += ns;
    cost_.longest_stop_ns = std::max(cost_.longest_stop_ns, ns);
  }
}

// What copies were made of, and what must be there when threads are sent to them: a library may have been closed meanwhile, and
// another one loaded in its place.
std::vector<ExpectBytesOp> ProcessInjector::CodeOf(const LoopCode& loop) {
  std::vector<ExpectBytesOp> pieces;
  uint64_t end = 0;
  for (const LoopInstruction& i : loop.instructions) {
    if (pieces.empty() || i.address != end) pieces.push_back({{i.address}, {}});
    const std::span<const uint8_t> code = i.code();
    pieces.back().bytes.insert(pieces.back().bytes.end(), code.begin(), code.end());
    end = i.end();
  }
  return pieces;
}

// Where the jump leads. The same program may have the same loop after an exec, but nothing of ours.
ExpectBytesOp ProcessInjector::TrampolineOf(const PatchSite& site) const {
  constexpr uint64_t kEnough = 32;
  const uint64_t at = site.built.trampoline;
  for (const Cache& cache : caches_) {
    if (at < cache.address || at >= cache.address + cache.bytes.size()) continue;
    const auto begin = cache.bytes.begin() + static_cast<std::ptrdiff_t>(at - cache.address);
    const auto left = static_cast<uint64_t>(cache.bytes.end() - begin);
    return {{at}, {begin, begin + static_cast<std::ptrdiff_t>(std::min(kEnough, left))}};
  }
  return {{at}, {0}};  // never: it lies in one of them
}

std::vector<HoldOp> ProcessInjector::PatchOps(const PatchSite& site) const {
  const PatchPlan& patch = site.built.patch;
  std::vector<HoldOp> ops(site.code.begin(), site.code.end());
  ops.push_back(TrampolineOf(site));
  MoveThreadsOp move;
  for (const AddressPair& pair : site.built.live.address_map) {
    if (InBody(site.body, pair.original)) move.pairs.emplace_back(pair.original, pair.copy);
  }
  move.pairs_only = {{patch.address, patch.covered_end}};
  ops.push_back(std::move(move));
  ops.push_back(WriteOp{{patch.address}, {site.built.jump.begin(), site.built.jump.end()}, true});
  return ops;
}

absl::Status ProcessInjector::PatchAll() {
  std::vector<HoldOp> ops = ProtectOps(0);
  for (const PatchSite& site : sites_) {
    if (site.index < 0 || !site.built.installed.status.ok()) continue;
    for (HoldOp& op : PatchOps(site)) ops.push_back(std::move(op));
  }
  return OfPatching(Hold(std::move(ops)).status());
}

absl::Status ProcessInjector::MayAlter() const {
  if (Cancelled()) return absl::CancelledError("altering was ended before it came to this loop");
  return StillAdmitted();
}

absl::Status ProcessInjector::StillAdmitted() const {
  return CheckUnchanged(*options_.admitted, ProcFs(), rank_.pid);
}

absl::Status ProcessInjector::SetPatched(int32_t loop, bool patched) {
  ASSIGN_OR_RETURN(PatchSite * site, SiteOf(loop, false));
  if (site->patched == patched) return absl::OkStatus();
  if (patched) RETURN_IF_ERROR(MayAlter());
  const PatchPlan& patch = site->built.patch;
  const std::vector<uint8_t> original(patch.original.begin(), patch.original.end());
  const std::vector<uint8_t> jump(site->built.jump.begin(), site->built.jump.end());
  std::vector<HoldOp> ops;
  if (patched) {
    ops = PatchOps(*site);
  } else {
    RETURN_IF_ERROR(SetMode(*site, kModeIdle));
    // Threads in the live copy leave it by themselves.
    ops = {ExpectBytesOp{{patch.address}, jump}, WriteOp{{patch.address}, original, true}};
  }
  const int64_t before = cost_.stop_ns;
  absl::Status status = OfPatching(Hold(std::move(ops), !patched).status());
  if (status.ok()) {
    site->patched = patched;
  } else {
    const std::optional<bool> in = JumpIsIn(*site);
    if (in) site->patched = *in;
    if (in && *in == patched) status = absl::OkStatus();
  }
  Audit(patched ? "install" : "restore", site, cost_.stop_ns - before, status);
  return status;
}

// A stop whose tracer was ended may have come to its end or not: the text tells, if nobody else wrote there.
std::optional<bool> ProcessInjector::JumpIsIn(const PatchSite& site) const {
  const auto& jump = site.built.jump;
  const auto& original = site.built.patch.original;
  std::vector<uint8_t> now(jump.size());
  if (!memory_.Read(site.built.patch.address, now).ok()) return std::nullopt;
  if (std::equal(now.begin(), now.end(), jump.begin(), jump.end())) return true;
  if (std::equal(now.begin(), now.end(), original.begin(), original.end())) return false;
  return std::nullopt;
}

absl::Status ProcessInjector::Uninstall() {
  if (!installed_) return absl::OkStatus();
  uninstall_tried_ = true;
  RestoreResult result;
  absl::Status status = RestoreRank(
      injection_,
      {options_.tracer, options_.max_stop_ns, 5 * kNsPerSecond, tracer_died_, options_.answers},
      &result);
  CountStops(result.stops_ns);
  int64_t pause = 0;
  for (int64_t ns : result.stops_ns) pause += ns;
  for (PatchSite& site : sites_) {
    if (site.index < 0 || !site.patched) continue;
    Audit("restore", &site, pause, OfRestoring(result, status));
    pause = 0;  // one stop for all
    if (status.ok()) site.patched = false;
  }
  Audit("unmap", nullptr, pause, OfRestoring(result, status));
  RETURN_IF_ERROR(status);
  installed_ = false;
  doorbell_.reset();
  {
    MutexLock lock(&mutex_);
    addresses_.clear();
    code_.clear();
  }
  return options_.journal->Remove(injection_);
}

std::optional<RuntimeAddress> ProcessInjector::OriginalAddress(RuntimeAddress address) const {
  MutexLock lock(&mutex_);
  const bool ours = std::any_of(code_.begin(), code_.end(), [&](const PcRange& range) {
    return address >= range.start && address < range.end;
  });
  if (!ours) return std::nullopt;
  auto after = std::upper_bound(
      addresses_.begin(), addresses_.end(), address,
      [](RuntimeAddress value, const AddressPair& pair) { return value < pair.copy; });
  if (after == addresses_.begin()) return std::nullopt;
  return std::prev(after)->original;
}

void ProcessInjector::Audit(const char* action, const PatchSite* site, int64_t pause_ns,
                            const absl::Status& outcome) {
  if (!options_.audit) return;
  AuditEntry entry;
  entry.unix_ns = SystemClock().UnixNs();
  entry.node = rank_.node;
  entry.pid = rank_.pid;
  entry.action = action;
  entry.pause_ns = pause_ns;
  entry.outcome = outcome.ok() ? "ok" : std::string(outcome.message());
  if (site != nullptr) {
    auto hex = [](const std::array<uint8_t, kJumpBytes>& bytes) {
      std::string text;
      for (uint8_t byte : bytes) absl::StrAppend(&text, absl::Hex(byte, absl::kZeroPad2));
      return text;
    };
    entry.loop_id = site->loop_id;
    entry.address = site->built.patch.address;
    entry.original_bytes = hex(site->built.patch.original);
    entry.written_bytes = hex(site->built.jump);
  }
  options_.audit(std::move(entry));
}

}  // namespace perfd::agent
