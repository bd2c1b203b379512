#include "agent/shadow/restore.h"

#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/attach/memory.h"
#include "agent/procfs/cgroup/suspension.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/forking/process_files.h"
#include "agent/shadow/payload_blob.h"
#include "agent/shadow/recovery/give_back.h"
#include "agent/shadow/region_access.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kNapNs = 2 * kNsPerMs;
constexpr int64_t kSuspendedNapNs = 20 * kNsPerMs;
// After a stop that took its longest time: the rank must not stand still more than it runs.
constexpr int64_t kNapFactor = 4;
constexpr int kMostTracerDeaths = 3;
constexpr int64_t kShadowPatienceNs = 3 * kNsPerSecond;
constexpr int64_t kInsidePatienceNs = 200 * kNsPerMs;

constexpr uint32_t kSameRecords =
    15;  // layout since which ThreadRecord is, and lies where, it does now

int64_t Now() {
  return SystemClock().MonotonicNs();
}
void Nap(int64_t ns = kNapNs) {
  absl::SleepFor(absl::Nanoseconds(ns));
}

// Where a region says who is in it.
struct BusyWords {
  uint64_t busy, orphan;
  uint64_t in_situ;  // 0: there is no such word
};

// Regions of agents of other versions are still taken out, by the journal. Sites lie where they always did.
absl::StatusOr<BusyWords> BusyWordsOf(uint32_t version) {
  constexpr uint32_t kUnfilled = 0, kFirst = 1, kFourCaches = 2, kSixteenCaches = 4;
  if (version == kFirst || version == kFourCaches) return BusyWords{144, 148, 0};
  // The words have not moved since; a layout that moves them needs a line here.
  static_assert(offsetof(RegionHeader, busy) == 336 && offsetof(RegionHeader, orphan) == 340 &&
                offsetof(RegionHeader, in_situ) == 392);
  if (version == kUnfilled || (version >= kSixteenCaches && version <= kShadowLayoutVersion))
    return BusyWords{offsetof(RegionHeader, busy), offsetof(RegionHeader, orphan),
                     offsetof(RegionHeader, in_situ)};
  return absl::FailedPreconditionError(
      absl::StrCat("it was injected into by another version (layout ", version, ")"));
}

// What of the injection is still there to be taken out.
struct Left {
  std::vector<const InjectedSite*> sites;  // our jump is in the text
  std::vector<PcRange> ranges;             // ours, mapped
  bool region = false;
  bool records = false;  // are of this layout
  BusyWords words{};
  uint32_t orphan = 0;
  GiveBackOp give_back;  // to threads that have jumped out of a copy
};

// After an exec another program may have memory at these addresses: it must look like ours, too.
bool IsOurs(const std::vector<MapEntry>& maps, const Memory& memory, const PcRange& range,
            bool shared, const std::vector<uint8_t>& begins) {
  const MapEntry* map = FindMapping(maps, range.start);
  const bool anonymous = map != nullptr && (map->path.empty() || map->path == "/dev/zero");
  if (range.end <= range.start || !anonymous || map->shared != shared) return false;
  auto bytes = memory.Read(range.start, begins.size());
  if (!bytes.ok()) return false;
  // Mapped, but not filled yet.
  const bool empty =
      std::all_of(bytes->begin(), bytes->end(), [](uint8_t byte) { return byte == 0; });
  return *bytes == begins || (empty && map->start == range.start);
}

std::vector<uint8_t> CacheBegins() {
  constexpr size_t kEnough = 8;  // of the exit stub
  const std::span<const uint8_t> blob = PayloadBlob();
  return {blob.begin(), blob.begin() + kEnough};
}

std::vector<uint8_t> RegionBegins() {
  std::vector<uint8_t> bytes(sizeof(kShadowMagic));
  std::memcpy(bytes.data(), &kShadowMagic, bytes.size());
  return bytes;
}

bool HasOurJump(const std::vector<MapEntry>& maps, const Memory& memory, const InjectedSite& site) {
  const MapEntry* map = FindMapping(maps, site.header);
  if (map == nullptr || IdentityOf(*map) != site.text) return false;
  auto bytes = memory.Read(site.header, site.written.size());
  return bytes.ok() && *bytes == site.written;
}

absl::StatusOr<Left> ProbeRank(const Injection& injection, const Memory& memory) {
  ASSIGN_OR_RETURN(std::vector<MapEntry> maps, ProcFs().Maps(injection.pid));
  Left left;
  for (const InjectedSite& site : injection.sites) {
    if (HasOurJump(maps, memory, site)) left.sites.push_back(&site);
  }
  for (const PcRange& cache : injection.caches) {
    if (IsOurs(maps, memory, cache, false, CacheBegins())) left.ranges.push_back(cache);
  }
  if (IsOurs(maps, memory, injection.region, true, RegionBegins())) {
    RegionAccess region(&memory, injection.region.start, 1);
    const uint64_t at = injection.region.start;
    ASSIGN_OR_RETURN(const auto magic, region.Read<uint64_t>(at + offsetof(RegionHeader, magic)));
    ASSIGN_OR_RETURN(const auto version,
                     region.Read<uint32_t>(at + offsetof(RegionHeader, version)));
    left.ranges.push_back(injection.region);
    left.region = magic == kShadowMagic;
    left.records = left.region && version >= kSameRecords && version <= kShadowLayoutVersion;
    ASSIGN_OR_RETURN(left.words, BusyWordsOf(left.region ? version : 0));
    ASSIGN_OR_RETURN(left.orphan, region.Read<uint32_t>(at + left.words.orphan));
  }
  return left;
}

// Nobody meets, leads or runs a copy in place.
bool IsAtRest(const RegionAccess& region, const BusyWords& words) {
  const auto busy = region.Read<uint32_t>(region.address() + words.busy);
  if (!busy.ok() || words.in_situ == 0) return !busy.ok() || *busy == 0;
  const auto in_situ = region.Read<uint32_t>(region.address() + words.in_situ);
  return *busy == 0 && (!in_situ.ok() || *in_situ == 0);
}

// No new rendezvous; the shadow under way, if any, ends within its limit.
void Quiet(const Injection& injection, const Memory& memory, const BusyWords& words) {
  RegionAccess region(&memory, injection.region.start, 1);
  for (uint32_t i = 0; i < kMaxSites; ++i)
    (void)region.Write(region.SiteAddress(i) + offsetof(Site, mode), uint32_t{0});
  const int64_t deadline = Now() + kShadowPatienceNs;
  while (Now() < deadline && !IsAtRest(region, words)) Nap();
}

// Nobody begins a run any more. One takes microseconds, but a handler of the program in its midst as long as it likes: that is
// waited for, not met by one stop after the other. What the records do not tell is not given back.
GiveBackOp AwaitOutside(const Injection& injection, const Memory& memory) {
  const int64_t deadline = Now() + kInsidePatienceNs;
  auto plan = ReadGiveBack(injection, memory);
  while (plan.ok() && !plan->records.empty() && Now() < deadline) {
    Nap();
    plan = ReadGiveBack(injection, memory);
  }
  return plan.ok() ? std::move(plan->op) : GiveBackOp{};
}

std::vector<HoldOp> MakeOps(const Injection& injection, const Left& left) {
  std::vector<HoldOp> ops;
  MoveThreadsOp move;
  RequireOutsideOp outside;
  for (const InjectedSite* site : left.sites) {
    ops.push_back(ExpectBytesOp{{site->header}, site->written});
    ops.push_back(WriteOp{{site->header}, site->original, true});
  }
  for (const InjectedSite& site : injection.sites) {
    for (const AddressPair& pair : site.pairs) move.pairs.emplace_back(pair.copy, pair.original);
  }
  if (!move.pairs.empty()) ops.push_back(std::move(move));
  // Whom this passes over is in the way of unmapping, too.
  if (!left.give_back.entries.empty()) ops.push_back(left.give_back);
  for (const PcRange& range : left.ranges) outside.ranges.push_back(range);
  if (!outside.ranges.empty()) ops.push_back(outside);
  for (const PcRange& cache : injection.caches) ops.push_back(ScanStacksOp{cache});
  if (left.orphan != 0) {
    CallOp reap;
    reap.call = SYS_wait4;
    reap.arguments = {OpValue{left.orphan}, OpValue{0}, OpValue{WNOHANG | uint64_t{0x80000000}},
                      OpValue{0}};
    reap.expect = CallOp::Expect::kAny;
    ops.push_back(reap);
  }
  for (const PcRange& range : left.ranges) {
    CallOp unmap;
    unmap.call = SYS_munmap;
    unmap.arguments = {OpValue{range.start}, OpValue{range.end - range.start}};
    ops.push_back(unmap);
  }
  return ops;
}

void RecordStop(const Tracer& tracer, const HoldRequest& request,
                const absl::StatusOr<HoldReply>& reply, std::vector<int64_t>* stops_ns) {
  const int64_t ns = reply.ok() ? reply->stop_ns : tracer.unanswered_stop_ns();
  if (ns <= 0) return;
  if (ns > request.max_stop_ns && !CheckNotSuspended(ProcFs(), request.pid).ok()) return;
  stops_ns->push_back(ns);
}

// *suspect: the tracer died or gave up in the middle of a remote call.
absl::StatusOr<HoldReply> RunHold(const RestoreOptions& options, const HoldRequest& request,
                                  RestoreResult* result, bool* suspect) {
  const absl::Status runs = CheckNotSuspended(ProcFs(), request.pid);
  result->suspended = !runs.ok();
  RETURN_IF_ERROR(runs);
  auto reply = options.tracer->Run(request);
  if (!reply.ok() || CallMayBeLost(*reply)) *suspect = true;
  RecordStop(*options.tracer, request, reply, &result->stops_ns);
  return reply;
}

// A remote call of a tracer that died or gave up is still made, by the thread itself, once it runs: until then the
// mappings are not what they are about to be. OK when no thread stands before a system call.
absl::Status Settle(const Injection& injection, const Memory& memory, const RestoreOptions& options,
                    RestoreResult* result, bool* suspect) {
  HoldRequest request{injection.pid, injection.start_ticks, options.max_stop_ns, {ReadThreadsOp{}}};
  ASSIGN_OR_RETURN(HoldReply reply, RunHold(options, request, result, suspect));
  RETURN_IF_ERROR(reply.status);
  const std::vector<uint8_t> system_call = {0x0f, 0x05};
  for (const ThreadFacts& thread : reply.results.at(0).threads) {
    auto code = memory.Read(thread.pc, system_call.size());
    if (!thread.in_call && code.ok() && *code == system_call)
      return absl::UnavailableError(
          absl::StrCat("thread ", thread.tid, " is about to make a system call"));
  }
  *suspect = false;
  return absl::OkStatus();
}

absl::Status Attempt(const Injection& injection, const Memory& memory,
                     const RestoreOptions& options, RestoreResult* result, bool* suspect,
                     bool* done) {
  ASSIGN_OR_RETURN(Left left, ProbeRank(injection, memory));
  if (left.sites.empty() && left.ranges.empty()) {
    *done = true;
    return absl::OkStatus();
  }
  result->found = true;
  if (left.region) Quiet(injection, memory, left.words);
  if (left.records) left.give_back = AwaitOutside(injection, memory);
  HoldRequest request{injection.pid, injection.start_ticks, options.max_stop_ns,
                      MakeOps(injection, left)};
  ASSIGN_OR_RETURN(HoldReply reply, RunHold(options, request, result, suspect));
  const size_t written = std::min(left.sites.size(), reply.results.size() / 2);
  if (reply.results.size() > 2 * left.sites.size() || reply.status.ok())
    result->sites += static_cast<int32_t>(written);
  if (reply.status.ok()) {
    for (const PcRange& range : left.ranges) result->unmapped_bytes += range.end - range.start;
    *done = true;  // what is mapped there from now on is the rank's own
  }
  return reply.status;
}

// Another process, another address space: nothing to restore.
bool HasEnded(const Injection& injection) {
  auto stamp = ProcFs().Stamp(injection.pid);
  return !stamp.ok() || stamp->start_ticks != injection.start_ticks || stamp->state == 'Z' ||
         stamp->state == 'X' ||
         (!injection.boot_id.empty() && injection.boot_id != "-" && injection.boot_id != BootId());
}

bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

absl::StatusOr<HoldReply> HoldPatiently(Tracer& tracer, const HoldRequest& request,
                                        int64_t deadline_ns, std::vector<int64_t>* stops_ns) {
  for (;;) {
    HoldReply reply;
    reply.status = CheckNotSuspended(ProcFs(), request.pid);
    const bool suspended = !reply.status.ok();
    if (!suspended) {
      auto held = tracer.Run(request);
      RecordStop(tracer, request, held, stops_ns);
      ASSIGN_OR_RETURN(reply, std::move(held));
    }
    if (!absl::IsUnavailable(reply.status) || Now() >= deadline_ns) return reply;
    Nap(suspended ? kSuspendedNapNs : kNapNs);
  }
}

absl::Status RestoreRank(const Injection& injection, const RestoreOptions& options,
                         RestoreResult* result) {
  const int64_t begin = Now(), deadline = begin + options.patience_ns;
  if (options.answers) RETURN_IF_ERROR(options.answers(injection.pid));
  auto memory = Memory::Open(injection.pid, injection.start_ticks);
  bool suspect = options.suspect;
  int deaths = 0;
  for (bool done = false; !done;) {
    if (HasEnded(injection) || (!memory.ok() && absl::IsNotFound(memory.status()))) {
      result->ended = true;
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(memory.status());
    absl::Status status = suspect ? Settle(injection, *memory, options, result, &suspect)
                                  : Attempt(injection, *memory, options, result, &suspect, &done);
    if (absl::IsNotFound(status) && HasEnded(injection)) continue;
    // For how long nobody knows: somebody else goes on (LateHealer).
    if (result->suspended) return status;
    if (absl::IsUnavailable(status) && options.tracer->pid() == 0) ++deaths;
    // The tracer of an agent that was killed just now may still be in the way.
    const bool traced =
        absl::IsFailedPrecondition(status) && options.suspect && Now() < begin + kNsPerSecond;
    const bool hopeless =
        (!MayPass(status) && !traced) || deaths >= kMostTracerDeaths || Now() >= deadline;
    if (!status.ok() && hopeless) return status;
    if (!status.ok())
      Nap(absl::IsDeadlineExceeded(status) ? kNapFactor * options.max_stop_ns : kNapNs);
  }
  return absl::OkStatus();
}

}  // namespace perfd::agent
