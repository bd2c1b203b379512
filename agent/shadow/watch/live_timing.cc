#include "agent/shadow/watch/live_timing.h"

#include <algorithm>
#include <map>

#include "agent/shadow/rank/shadow_charges.h"
#include "agent/shadow/timing/live_reading.h"
#include "agent/shadow/watch/slice.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kLiveSliceNs = 50 * kNsPerMs;  // the payload ends it by itself

int64_t Now() {
  return SystemClock().MonotonicNs();
}

// What was recorded of `site`, without the first one of each thread, which may pay for what the last shadow left behind.
std::vector<LiveRecord> RecordsOf(const std::vector<LiveRecord>& ring, uint32_t site,
                                  bool batches) {
  std::vector<LiveRecord> records;
  std::map<uint32_t, int> seen;
  for (const LiveRecord& record : ring) {
    const bool complete = record.sequence != 0 && record.end >= record.start;
    if (!complete || record.site != site || (record.turns != 0) != batches) continue;
    if (seen[record.tid]++ > 0) records.push_back(record);
  }
  return records;
}

uint64_t TicksOf(const LiveRecord& record, uint64_t reading) {
  return std::max(record.end - record.start, reading + 1) - reading;
}

// Until as many as the ring's limit are there, or it is late. Then nothing begins any more.
absl::Status AwaitRecords(InjectedRank& rank, uint32_t limit, int64_t timeout_ns,
                          uint32_t doorbell) {
  const uint64_t next_address = rank.region->address() + offsetof(RegionHeader, live_next);
  const int64_t begin = Now(), deadline = begin + timeout_ns;
  absl::StatusOr<uint32_t> next = 0;
  while (next.ok() && *next < limit && Now() < deadline && !rank.hold.Cancelled()) {
    rank.region->doorbell().Await(doorbell, rank.region->doorbell().can_wait()
                                                ? kDoorbellSliceNs
                                                : SliceNs(Now() - begin, kLiveSliceNs));
    const absl::Status beat = rank.region->BeatIfDue();
    doorbell = rank.region->doorbell().Count().value_or(doorbell);
    next = beat.ok() ? rank.region->Read<uint32_t>(next_address) : absl::StatusOr<uint32_t>(beat);
  }
  return next.status();
}

// Runs the site in `mode` until `limit` records are there; all that there are.
absl::StatusOr<std::vector<LiveRecord>> Record(InjectedRank& rank, const PatchSite& site,
                                               uint32_t mode, uint32_t limit, int64_t timeout_ns) {
  const uint64_t next_address = rank.region->address() + offsetof(RegionHeader, live_next);
  const uint64_t limit_address = rank.region->address() + offsetof(RegionHeader, live_limit);
  RETURN_IF_ERROR(rank.region->Write(next_address, uint32_t{0}));
  RETURN_IF_ERROR(rank.region->Write(limit_address, limit));
  RETURN_IF_ERROR(
      rank.region->WriteMany(rank.region->LiveAddress(0), std::vector<LiveRecord>(kLiveSlots)));
  RETURN_IF_ERROR(rank.region->Beat());
  ASSIGN_OR_RETURN(uint32_t doorbell, rank.region->doorbell().Count());
  RETURN_IF_ERROR(rank.region->SetMode(site.number(), mode));
  const absl::Status waited = AwaitRecords(rank, limit, timeout_ns, doorbell);
  RETURN_IF_ERROR(rank.region->Write(limit_address, uint32_t{0}));
  RETURN_IF_ERROR(rank.region->SetMode(site.number(), kModeIdle));
  RETURN_IF_ERROR(waited);
  ASSIGN_OR_RETURN(const uint32_t next, rank.region->Read<uint32_t>(next_address));
  ASSIGN_OR_RETURN(
      std::vector<LiveRecord> records,
      rank.region->ReadMany<LiveRecord>(rank.region->LiveAddress(0), std::min(next, kLiveSlots)));
  rank.cost.pass_through_ns += 2 * kSlowEntryNs * static_cast<int64_t>(records.size());
  return records;
}

// One more of each thread: its first one does not count.
uint32_t LimitOf(const InjectedRank& rank, int32_t count) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>(int64_t{count} + rank.region->blocks(), 1, kLiveSlots));
}

bool IsOurJump(const InjectedRank& rank, uint64_t address) {
  return std::any_of(rank.code.sites.begin(), rank.code.sites.end(), [&](const PatchSite& site) {
    const uint64_t jump = site.built.patch.address;
    return site.accepted() && address >= jump && address < jump + kJumpBytes;
  });
}

// But for our own jumps. A library may have been closed, and another one loaded in its place.
bool IsAsDecoded(const InjectedRank& rank, const std::vector<CodeText>& text) {
  return std::all_of(text.begin(), text.end(), [&](const CodeText& piece) {
    const auto bytes = rank.memory.Read(piece.address, piece.bytes.size());
    if (!bytes.ok()) return false;
    for (size_t i = 0; i < bytes->size(); ++i) {
      if ((*bytes)[i] != piece.bytes[i] && !IsOurJump(rank, piece.address + i)) return false;
    }
    return true;
  });
}

absl::Status NobodyCame(InjectedRank& rank) {
  RETURN_IF_ERROR(rank.hold.MayAlter());
  return absl::DeadlineExceededError("the loop was not entered in time");
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> TimeLive(InjectedRank& rank, const PatchSite& site,
                                               int32_t count, int64_t timeout_ns) {
  if (!site.built.timed) return absl::FailedPreconditionError(site.built.untimed);
  ASSIGN_OR_RETURN(const std::vector<LiveRecord> ring,
                   Record(rank, site, kModeLive, LimitOf(rank, count), timeout_ns));
  const uint64_t reading = LiveReadingTicks();
  std::vector<uint64_t> ticks;
  for (const LiveRecord& record : RecordsOf(ring, site.number(), false)) {
    if (ticks.size() < static_cast<size_t>(count)) ticks.push_back(TicksOf(record, reading));
  }
  if (ticks.empty()) return NobodyCame(rank);
  return ticks;
}

absl::StatusOr<std::vector<LiveBatch>> TimeLiveBatches(InjectedRank& rank, const PatchSite& site,
                                                       int32_t count, uint64_t turns,
                                                       int64_t timeout_ns) {
  if (!site.built.timed_batch)
    return absl::FailedPreconditionError("no batch of it can run in the rank");
  if (!IsAsDecoded(rank, site.built.timed_batch->text))
    return absl::FailedPreconditionError("the code around it is not the one that was decoded");
  const uint64_t at = rank.region->TurnsAddress(site.number());
  ASSIGN_OR_RETURN(const uint32_t thread,
                   rank.region->Read<uint32_t>(at + offsetof(LiveTurns, thread)));
  if (thread != 0) return absl::UnavailableError("a thread has not ended its batch");
  const auto wanted = static_cast<uint32_t>(std::min<uint64_t>(turns, ~uint32_t{0}));
  RETURN_IF_ERROR(rank.region->Write(at + offsetof(LiveTurns, wanted), wanted));
  const auto ring = Record(rank, site, kModeLiveBatch, LimitOf(rank, count), timeout_ns);
  // A batch that is still under way opens no other one.
  RETURN_IF_ERROR(rank.region->Write(at + offsetof(LiveTurns, wanted), uint32_t{0}));
  RETURN_IF_ERROR(ring.status());
  const uint64_t reading = LiveReadingTicks();
  std::vector<LiveBatch> batches;
  for (const LiveRecord& record : RecordsOf(*ring, site.number(), true))
    batches.push_back({TicksOf(record, reading), record.turns});
  if (batches.empty()) return NobodyCame(rank);
  return batches;
}

}  // namespace perfd::agent
