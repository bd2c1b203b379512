// ProcessInjector: what needs no shadow - counting entries, timing the loop in the rank itself, costs.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/forking/preconditions.h"
#include "agent/shadow/forking/process_files.h"
#include "agent/shadow/injector/process_injector.h"
#include "agent/shadow/rank/shadow_charges.h"
#include "agent/shadow/timing/live_reading.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kShortestSliceNs = 2 * kNsPerMs;
constexpr int64_t kEntryCountSliceNs = 10 * kNsPerMs;  // at most: entries are counted until then
constexpr int64_t kLiveSliceNs = 50 * kNsPerMs;        // the payload ends it by itself
constexpr int64_t kDoorbellSliceNs = 50 * kNsPerMs;    // with a doorbell nothing is late
constexpr uint64_t kEnoughEntries =
    20'000;  // of an entry count: a thread that others keep away for some ms belongs to the team, too

int64_t Now() {
  return SystemClock().MonotonicNs();
}
// Between two looks for what has lasted so long already, of somebody who does not hear the doorbell.
int64_t SliceNs(int64_t elapsed_ns, int64_t most_ns) {
  return std::clamp(elapsed_ns / 4, kShortestSliceNs, most_ns);
}

}  // namespace

// While a site is armed every entry is a slow one; and who came to a gathering that failed waited in vain, at most so long. What
// shadows used of CPUs is counted whatever became of them; more than their team can have used is not believed.
void ProcessInjector::ChargeArmed(PatchSite& site, const ShadowPlan& plan,
                                  const std::vector<ThreadRecord>& before) {
  const auto index = site.number();
  if (const auto after = rank_.region->Records(); after.ok()) {
    const std::vector<uint64_t> counts = NewEntries(before, *after, index);
    const uint64_t most = MostEntries(counts);
    rank_.cost.pass_through_ns += kSlowEntryNs * static_cast<int64_t>(most);
  }
  const auto now = rank_.region->Read<Site>(rank_.region->SiteAddress(index));
  if (now.ok()) ChargeSite(*now, plan, &site, &rank_.cost);
}

absl::StatusOr<EntryCount> ProcessInjector::CountEntries(int32_t loop, int64_t ns) {
  ASSIGN_OR_RETURN(PatchSite * site, rank_.PatchedSiteOf(loop));
  const auto index = site->number();
  RETURN_IF_ERROR(rank_.region->ForgetEndedThreads(rank_.info.pid));
  RETURN_IF_ERROR(rank_.region->Beat());
  const uint64_t counter = rank_.region->SiteAddress(index) + offsetof(Site, entries);
  ASSIGN_OR_RETURN(std::vector<ThreadRecord> before, rank_.region->Records());
  ASSIGN_OR_RETURN(uint64_t entries_before, rank_.region->Read<uint64_t>(counter));
  RETURN_IF_ERROR(rank_.region->Write(rank_.region->SiteAddress(index) + offsetof(Site, ring_at),
                                      static_cast<uint32_t>(entries_before + kEnoughEntries)));
  ASSIGN_OR_RETURN(uint32_t doorbell, rank_.region->doorbell().Count());
  const int64_t begin = Now();
  RETURN_IF_ERROR(rank_.region->SetMode(site->number(), kModeEntryCount));
  absl::StatusOr<uint64_t> entries = entries_before;
  absl::Status status;
  while (status.ok() && Now() - begin < ns && *entries - entries_before < kEnoughEntries &&
         !rank_.hold.Cancelled()) {
    const int64_t elapsed = Now() - begin;
    const int64_t most = std::max(kShortestSliceNs, std::min(kEntryCountSliceNs, ns));
    rank_.region->doorbell().Await(doorbell, rank_.region->doorbell().can_wait()
                                                 ? std::min(kDoorbellSliceNs, ns - elapsed)
                                                 : SliceNs(elapsed, most));
    status = rank_.region->BeatIfDue();
    doorbell = rank_.region->doorbell().Count().value_or(
        doorbell);  // before what it tells of is looked at
    if (status.ok()) entries = rank_.region->Read<uint64_t>(counter);
    if (status.ok()) status = entries.status();
  }
  absl::Status idle = rank_.region->SetMode(site->number(), kModeIdle);
  const int64_t elapsed = std::max<int64_t>(1, Now() - begin);
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(idle);
  ASSIGN_OR_RETURN(std::vector<ThreadRecord> after, rank_.region->Records());
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
  rank_.cost.pass_through_ns += counting;
  if (entry_count.team == 0) RETURN_IF_ERROR(rank_.hold.MayAlter());  // nobody had the time to come
  shadow_cost_.SawTeam(entry_count.team);
  return entry_count;
}

absl::StatusOr<std::vector<uint64_t>> ProcessInjector::TimeLive(int32_t loop, int32_t count,
                                                                int64_t timeout_ns) {
  ASSIGN_OR_RETURN(PatchSite * site, rank_.PatchedSiteOf(loop));
  if (!site->built.timed) return absl::FailedPreconditionError(site->built.untimed);
  const uint64_t next_address = rank_.region->address() + offsetof(RegionHeader, live_next);
  // The first instance of each thread may pay for what the last shadow left behind.
  const auto limit = static_cast<uint32_t>(
      std::clamp<int64_t>(int64_t{count} + rank_.region->blocks(), 1, kLiveSlots));
  RETURN_IF_ERROR(rank_.region->Write(next_address, uint32_t{0}));
  RETURN_IF_ERROR(rank_.region->Write(next_address + 4, limit));
  static_assert(offsetof(RegionHeader, live_limit) == offsetof(RegionHeader, live_next) + 4);
  RETURN_IF_ERROR(
      rank_.region->WriteMany(rank_.region->LiveAddress(0), std::vector<LiveRecord>(kLiveSlots)));
  RETURN_IF_ERROR(rank_.region->Beat());
  ASSIGN_OR_RETURN(uint32_t doorbell, rank_.region->doorbell().Count());
  RETURN_IF_ERROR(rank_.region->SetMode(site->number(), kModeLive));
  const int64_t begin = Now(), deadline = begin + timeout_ns;
  absl::StatusOr<uint32_t> next = 0;
  while (next.ok() && *next < limit && Now() < deadline && !rank_.hold.Cancelled()) {
    rank_.region->doorbell().Await(doorbell, rank_.region->doorbell().can_wait()
                                                 ? kDoorbellSliceNs
                                                 : SliceNs(Now() - begin, kLiveSliceNs));
    const absl::Status beat = rank_.region->BeatIfDue();
    doorbell = rank_.region->doorbell().Count().value_or(doorbell);
    next = beat.ok() ? rank_.region->Read<uint32_t>(next_address) : absl::StatusOr<uint32_t>(beat);
  }
  RETURN_IF_ERROR(rank_.region->SetMode(site->number(), kModeIdle));
  RETURN_IF_ERROR(next.status());
  ASSIGN_OR_RETURN(std::vector<LiveRecord> records,
                   rank_.region->ReadMany<LiveRecord>(rank_.region->LiveAddress(0),
                                                      std::min(*next, kLiveSlots)));
  rank_.cost.pass_through_ns += 2 * kSlowEntryNs * static_cast<int64_t>(records.size());
  const uint64_t reading = LiveReadingTicks();
  std::vector<uint64_t> ticks;
  std::map<uint32_t, int> seen;
  for (const LiveRecord& record : records) {
    if (record.sequence == 0 || record.site != site->number() || record.end < record.start)
      continue;
    if (seen[record.tid]++ > 0 && ticks.size() < static_cast<size_t>(count))
      ticks.push_back(std::max(record.end - record.start, reading + 1) - reading);
  }
  if (!ticks.empty()) return ticks;
  RETURN_IF_ERROR(rank_.hold.MayAlter());
  return absl::DeadlineExceededError("the loop was not entered in time");
}

// The rank needs some time to write again to what the fork protected; after much more its own faults would be counted, too.
void ProcessInjector::LearnLaterFaults() {
  constexpr int64_t kSoonestNs = 100 * kNsPerMs, kLatestNs = 2 * kNsPerSecond;
  const int64_t elapsed = Now() - shadow_end_ns_;
  if (!faults_before_ || elapsed < kSoonestNs) return;
  auto faults = ReadMinorFaults(rank_.info.pid);
  if (elapsed <= kLatestNs && faults.ok() && *faults >= *faults_before_)
    shadow_cost_.LearnLaterFaults(forked_, *faults - *faults_before_);
  faults_before_.reset();
}

// Files may have been opened, mappings and devices mapped, a debugger may have come since the injector was opened.
absl::StatusOr<RankHazards> ProcessInjector::CheckHazards() {
  RETURN_IF_ERROR(CheckMappings(ProcFs(), rank_.info.pid, rank_.options.max_stop_ns));
  ASSIGN_OR_RETURN(const MemoryFacts facts, memory_walk_.Facts());
  ASSIGN_OR_RETURN(RankHazards hazards,
                   ReadHazards(rank_.info.pid, facts, rank_.options.ranks_at_once));
  RETURN_IF_ERROR(JudgeHazards(hazards));
  return hazards;
}

// That opens some twenty files; a prediction may be asked for at every look at the budget. A shadow reads anew.
absl::Status ProcessInjector::ReadMemoryCached() {
  constexpr int64_t kMemoryCacheNs = 5 * kNsPerSecond;
  if (memory_cache_ && Now() < memory_cache_until_ns_) return absl::OkStatus();
  MemoryCache cached;
  ASSIGN_OR_RETURN(cached.memory, memory_walk_.Facts());
  ASSIGN_OR_RETURN(cached.node, ReadNodeMemory());
  cached.cgroup = ReadCgroupMemory(rank_.info.pid);
  memory_cache_ = cached;
  memory_cache_until_ns_ = Now() + kMemoryCacheNs;
  return absl::OkStatus();
}

ShadowPrediction ProcessInjector::PredictShadow() {
  ShadowPrediction prediction;
  prediction.status = ReadMemoryCached();
  if (!prediction.status.ok()) return prediction;
  LearnLaterFaults();
  const auto& [facts, node, cgroup] = *memory_cache_;
  prediction.status = JudgeMemory(facts, node, cgroup, 0, rank_.options.ranks_at_once);
  prediction.fork_ns = shadow_cost_.ForkNs(facts);
  prediction.later_fault_ns = shadow_cost_.LaterFaultNs(facts);
  prediction.copy_ns_per_mb = shadow_cost_.CopyNsPerMb();
  return prediction;
}

}  // namespace perfd::agent
