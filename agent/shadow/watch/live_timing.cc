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

// The first instance of each thread may pay for what the last shadow left behind.
std::vector<uint64_t> TicksOf(const std::vector<LiveRecord>& records, uint32_t site,
                              int32_t count) {
  const uint64_t reading = LiveReadingTicks();
  std::vector<uint64_t> ticks;
  std::map<uint32_t, int> seen;
  for (const LiveRecord& record : records) {
    if (record.sequence == 0 || record.site != site || record.end < record.start) continue;
    if (seen[record.tid]++ > 0 && ticks.size() < static_cast<size_t>(count))
      ticks.push_back(std::max(record.end - record.start, reading + 1) - reading);
  }
  return ticks;
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> TimeLive(InjectedRank& rank, const PatchSite& site,
                                               int32_t count, int64_t timeout_ns) {
  if (!site.built.timed) return absl::FailedPreconditionError(site.built.untimed);
  const uint64_t next_address = rank.region->address() + offsetof(RegionHeader, live_next);
  // One more of each thread: its first one does not count.
  const auto limit = static_cast<uint32_t>(
      std::clamp<int64_t>(int64_t{count} + rank.region->blocks(), 1, kLiveSlots));
  RETURN_IF_ERROR(rank.region->Write(next_address, uint32_t{0}));
  RETURN_IF_ERROR(rank.region->Write(next_address + 4, limit));
  static_assert(offsetof(RegionHeader, live_limit) == offsetof(RegionHeader, live_next) + 4);
  RETURN_IF_ERROR(
      rank.region->WriteMany(rank.region->LiveAddress(0), std::vector<LiveRecord>(kLiveSlots)));
  RETURN_IF_ERROR(rank.region->Beat());
  ASSIGN_OR_RETURN(uint32_t doorbell, rank.region->doorbell().Count());
  RETURN_IF_ERROR(rank.region->SetMode(site.number(), kModeLive));
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
  RETURN_IF_ERROR(rank.region->SetMode(site.number(), kModeIdle));
  RETURN_IF_ERROR(next.status());
  ASSIGN_OR_RETURN(
      std::vector<LiveRecord> records,
      rank.region->ReadMany<LiveRecord>(rank.region->LiveAddress(0), std::min(*next, kLiveSlots)));
  rank.cost.pass_through_ns += 2 * kSlowEntryNs * static_cast<int64_t>(records.size());
  std::vector<uint64_t> ticks = TicksOf(records, site.number(), count);
  if (!ticks.empty()) return ticks;
  RETURN_IF_ERROR(rank.hold.MayAlter());
  return absl::DeadlineExceededError("the loop was not entered in time");
}

}  // namespace perfd::agent
