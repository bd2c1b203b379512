#include "agent/shadow/watch/entry_counting.h"

#include <algorithm>
#include <vector>

#include "agent/shadow/rank/shadow_charges.h"
#include "agent/shadow/watch/slice.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kEntryCountSliceNs = 10 * kNsPerMs;  // at most: entries are counted until then
constexpr uint64_t kEnoughEntries =
    20'000;  // of an entry count: a thread that others keep away for some ms belongs to the team, too

int64_t Now() {
  return SystemClock().MonotonicNs();
}

}  // namespace

absl::StatusOr<EntryCount> CountEntries(InjectedRank& rank, const PatchSite& site, int64_t ns) {
  const uint32_t index = site.number();
  RETURN_IF_ERROR(rank.region->ForgetEndedThreads(rank.info.pid));
  RETURN_IF_ERROR(rank.region->Beat());
  const uint64_t counter = rank.region->SiteAddress(index) + offsetof(Site, entries);
  ASSIGN_OR_RETURN(std::vector<ThreadRecord> before, rank.region->Records());
  ASSIGN_OR_RETURN(uint64_t entries_before, rank.region->Read<uint64_t>(counter));
  RETURN_IF_ERROR(rank.region->Write(rank.region->SiteAddress(index) + offsetof(Site, ring_at),
                                     static_cast<uint32_t>(entries_before + kEnoughEntries)));
  ASSIGN_OR_RETURN(uint32_t doorbell, rank.region->doorbell().Count());
  const int64_t begin = Now();
  RETURN_IF_ERROR(rank.region->SetMode(site.number(), kModeEntryCount));
  absl::StatusOr<uint64_t> entries = entries_before;
  absl::Status status;
  while (status.ok() && Now() - begin < ns && *entries - entries_before < kEnoughEntries &&
         !rank.hold.Cancelled()) {
    const int64_t elapsed = Now() - begin;
    const int64_t most = std::max(kShortestSliceNs, std::min(kEntryCountSliceNs, ns));
    rank.region->doorbell().Await(doorbell, rank.region->doorbell().can_wait()
                                                ? std::min(kDoorbellSliceNs, ns - elapsed)
                                                : SliceNs(elapsed, most));
    status = rank.region->BeatIfDue();
    doorbell =
        rank.region->doorbell().Count().value_or(doorbell);  // before what it tells of is looked at
    if (status.ok()) entries = rank.region->Read<uint64_t>(counter);
    if (status.ok()) status = entries.status();
  }
  absl::Status idle = rank.region->SetMode(site.number(), kModeIdle);
  const int64_t elapsed = std::max<int64_t>(1, Now() - begin);
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(idle);
  ASSIGN_OR_RETURN(std::vector<ThreadRecord> after, rank.region->Records());
  const std::vector<uint64_t> counts = NewEntries(before, after, index);
  EntryCount entry_count;
  const uint64_t most = MostEntries(counts);
  // A thread that comes only now and then is no member of the team that is to meet.
  entry_count.team = static_cast<int32_t>(
      std::count_if(counts.begin(), counts.end(), [&](uint64_t n) { return 2 * n >= most; }));
  // The loop would have been entered as often without the counting, in the time that this leaves.
  const auto counting = kSlowEntryNs * static_cast<int64_t>(most);
  const int64_t undisturbed = std::max(elapsed / 100, elapsed - counting);
  entry_count.entries_per_second =
      static_cast<double>(*entries - entries_before) * 1e9 / static_cast<double>(undisturbed);
  rank.cost.pass_through_ns += counting;
  if (entry_count.team == 0) RETURN_IF_ERROR(rank.hold.MayAlter());  // nobody had the time to come
  return entry_count;
}

}  // namespace perfd::agent
