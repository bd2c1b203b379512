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
#include "agent/shadow/timing/live_reading.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kBeatNs =
    100 * kNsPerMs;  // while it waits; the payload takes ten times as long for death
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

// Of each thread that has come to the site since `before` was read, how often.
std::vector<uint64_t> NewEntries(const std::vector<ThreadRecord>& before,
                                 const std::vector<ThreadRecord>& after, uint32_t index) {
  std::vector<uint64_t> counts;
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    const uint64_t earlier = before[i].tid == after[i].tid ? before[i].entries[index] : 0;
    if (after[i].tid != 0 && after[i].entries[index] > earlier)
      counts.push_back(after[i].entries[index] - earlier);
  }
  return counts;
}

// What a counter of the region has gained since it was charged last.
uint64_t NewlyCounted(uint64_t count, uint64_t& charged) {
  return count < charged ? 0 : count - std::exchange(charged, count);
}

}  // namespace

absl::StatusOr<ProcessInjector::PatchSite*> ProcessInjector::SiteOf(int32_t loop,
                                                                    bool must_be_patched) {
  if (loop < 0 || static_cast<size_t>(loop) >= sites_.size())
    return absl::InvalidArgumentError(absl::StrCat("no loop ", loop));
  PatchSite& site = sites_[static_cast<size_t>(loop)];
  if (!site.built.installed.status.ok()) return site.built.installed.status;
  if (!installed_) return absl::FailedPreconditionError("no loop is installed");
  if (must_be_patched) RETURN_IF_ERROR(MayAlter());
  // The jump could not be put back just now: the threads did not come to rest in time.
  if (must_be_patched && !site.patched) return absl::UnavailableError("the loop is not patched");
  return &site;
}

// Somebody may have healed the rank beneath us: what is mapped there by now is not ours to write.
absl::Status ProcessInjector::RegionIsThere() const {
  const auto magic = region_->Read<uint64_t>(region_->address());
  if (magic.ok() && *magic == kShadowMagic) return absl::OkStatus();
  if (absl::IsNotFound(magic.status())) return magic.status();
  return absl::FailedPreconditionError("what was put into the rank has been taken out meanwhile");
}

absl::Status ProcessInjector::Beat() {
  RETURN_IF_ERROR(RegionIsThere());
  beat_ns_ = Now();
  return region_->Write(region_->address() + offsetof(RegionHeader, heartbeat_ticks),
                        TickClock::Ticks());
}

absl::Status ProcessInjector::BeatIfDue() {
  return Now() - beat_ns_ < kBeatNs ? absl::OkStatus() : Beat();
}

absl::Status ProcessInjector::SetMode(const PatchSite& site, uint32_t mode) {
  RETURN_IF_ERROR(RegionIsThere());
  return region_->Write(
      region_->SiteAddress(static_cast<uint32_t>(site.index)) + offsetof(Site, mode), mode);
}

absl::StatusOr<std::vector<ThreadRecord>> ProcessInjector::Records() const {
  return region_->ReadMany<ThreadRecord>(region_->RecordAddress(0), region_->blocks());
}

// Records are claimed for good; those of threads that ended are given back here, while nobody enters slowly. The records come
// first: whoever has one by then and is alive is among the threads.
absl::Status ProcessInjector::ForgetEndedThreads() {
  ASSIGN_OR_RETURN(NamespacePid pid, ReadNamespacePid(rank_.pid));
  if (pid.levels > 1) return absl::OkStatus();  // the rank knows its threads by other numbers
  ASSIGN_OR_RETURN(std::vector<ThreadRecord> records, Records());
  ASSIGN_OR_RETURN(std::vector<int32_t> threads, ProcFs().Threads(rank_.pid));
  for (uint32_t i = 0; i < records.size(); ++i) {
    const auto tid = static_cast<int32_t>(records[i].tid);
    if (tid == 0 || std::find(threads.begin(), threads.end(), tid) != threads.end()) continue;
    // A listing can miss a thread while others end, and a record may be all that knows the mask of who is in a copy.
    if (!absl::IsNotFound(ProcFs().CpuNs(rank_.pid, tid).status())) continue;
    RETURN_IF_ERROR(region_->Write(region_->RecordAddress(i), ThreadRecord{}));
  }
  return absl::OkStatus();
}

// While a site is armed every entry is a slow one; and who came to a gathering that failed waited in vain, at most so long. What
// shadows used of CPUs is counted whatever became of them; more than their team can have used is not believed.
void ProcessInjector::ChargeArmed(PatchSite& site, const ShadowPlan& plan,
                                  const std::vector<ThreadRecord>& before) {
  const auto index = static_cast<uint32_t>(site.index);
  if (const auto after = Records(); after.ok()) {
    const std::vector<uint64_t> counts = NewEntries(before, *after, index);
    const uint64_t most = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
    cost_.pass_through_ns += kSlowEntryNs * static_cast<int64_t>(most);
  }
  const auto now = region_->Read<Site>(region_->SiteAddress(index));
  if (!now.ok()) return;
  const uint64_t most_cpu_us = plan.team * (plan.shadow_ns + kNsPerSecond) / 1000;
  const uint64_t cpu_us = NewlyCounted(now->shadow_cpu_us, site.charged_cpu_us);
  cost_.shadow_cpu_ns += 1000 * static_cast<int64_t>(std::min(cpu_us, most_cpu_us));
  const uint64_t timeouts = NewlyCounted(now->timeouts, site.charged_timeouts);
  cost_.pass_through_ns +=
      static_cast<int64_t>(std::min<uint64_t>(timeouts, 1000) * plan.gather_ns);
}

absl::StatusOr<EntryCount> ProcessInjector::CountEntries(int32_t loop, int64_t ns) {
  ASSIGN_OR_RETURN(PatchSite * site, SiteOf(loop, true));
  const auto index = static_cast<uint32_t>(site->index);
  RETURN_IF_ERROR(ForgetEndedThreads());
  RETURN_IF_ERROR(Beat());
  const uint64_t counter = region_->SiteAddress(index) + offsetof(Site, entries);
  ASSIGN_OR_RETURN(std::vector<ThreadRecord> before, Records());
  ASSIGN_OR_RETURN(uint64_t entries_before, region_->Read<uint64_t>(counter));
  RETURN_IF_ERROR(region_->Write(region_->SiteAddress(index) + offsetof(Site, ring_at),
                                 static_cast<uint32_t>(entries_before + kEnoughEntries)));
  ASSIGN_OR_RETURN(uint32_t doorbell, doorbell_->Count());
  const int64_t begin = Now();
  RETURN_IF_ERROR(SetMode(*site, kModeEntryCount));
  absl::StatusOr<uint64_t> entries = entries_before;
  absl::Status status;
  while (status.ok() && Now() - begin < ns && *entries - entries_before < kEnoughEntries &&
         !Cancelled()) {
    const int64_t elapsed = Now() - begin;
    const int64_t most = std::max(kShortestSliceNs, std::min(kEntryCountSliceNs, ns));
    doorbell_->Await(doorbell, doorbell_->can_wait() ? std::min(kDoorbellSliceNs, ns - elapsed)
                                                     : SliceNs(elapsed, most));
    status = BeatIfDue();
    doorbell = doorbell_->Count().value_or(doorbell);  // before what it tells of is looked at
    if (status.ok()) entries = region_->Read<uint64_t>(counter);
    if (status.ok()) status = entries.status();
  }
  absl::Status idle = SetMode(*site, kModeIdle);
  const int64_t elapsed = std::max<int64_t>(1, Now() - begin);
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(idle);
  ASSIGN_OR_RETURN(std::vector<ThreadRecord> after, Records());
  const std::vector<uint64_t> counts = NewEntries(before, after, index);
  EntryCount entry_count;
  const uint64_t most = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  // A thread that comes only now and then is no member of the team that is to meet.
  entry_count.team = static_cast<int32_t>(
      std::count_if(counts.begin(), counts.end(), [&](uint64_t n) { return 2 * n >= most; }));
  // The loop would have been entered as often without the counting, in the time that this leaves.
  const auto counting = kSlowEntryNs * static_cast<int64_t>(most);
  const int64_t undisturbed = std::max(elapsed / 100, elapsed - counting);
  entry_count.entries_per_second =
      static_cast<double>(*entries - entries_before) * 1e9 / static_cast<double>(undisturbed);
  cost_.pass_through_ns += counting;
  if (entry_count.team == 0) RETURN_IF_ERROR(MayAlter());  // nobody had the time to come
  shadow_cost_.SawTeam(entry_count.team);
  return entry_count;
}

absl::StatusOr<std::vector<uint64_t>> ProcessInjector::TimeLive(int32_t loop, int32_t count,
                                                                int64_t timeout_ns) {
  ASSIGN_OR_RETURN(PatchSite * site, SiteOf(loop, true));
  if (!site->built.timed) return absl::FailedPreconditionError(site->built.untimed);
  const uint64_t next_address = region_->address() + offsetof(RegionHeader, live_next);
  // The first instance of each thread may pay for what the last shadow left behind.
  const auto limit =
      static_cast<uint32_t>(std::clamp<int64_t>(int64_t{count} + region_->blocks(), 1, kLiveSlots));
  RETURN_IF_ERROR(region_->Write(next_address, uint32_t{0}));
  RETURN_IF_ERROR(region_->Write(next_address + 4, limit));
  static_assert(offsetof(RegionHeader, live_limit) == offsetof(RegionHeader, live_next) + 4);
  RETURN_IF_ERROR(region_->WriteMany(region_->LiveAddress(0), std::vector<LiveRecord>(kLiveSlots)));
  RETURN_IF_ERROR(Beat());
  ASSIGN_OR_RETURN(uint32_t doorbell, doorbell_->Count());
  RETURN_IF_ERROR(SetMode(*site, kModeLive));
  const int64_t begin = Now(), deadline = begin + timeout_ns;
  absl::StatusOr<uint32_t> next = 0;
  while (next.ok() && *next < limit && Now() < deadline && !Cancelled()) {
    doorbell_->Await(
        doorbell, doorbell_->can_wait() ? kDoorbellSliceNs : SliceNs(Now() - begin, kLiveSliceNs));
    const absl::Status beat = BeatIfDue();
    doorbell = doorbell_->Count().value_or(doorbell);
    next = beat.ok() ? region_->Read<uint32_t>(next_address) : absl::StatusOr<uint32_t>(beat);
  }
  RETURN_IF_ERROR(SetMode(*site, kModeIdle));
  RETURN_IF_ERROR(next.status());
  ASSIGN_OR_RETURN(
      std::vector<LiveRecord> records,
      region_->ReadMany<LiveRecord>(region_->LiveAddress(0), std::min(*next, kLiveSlots)));
  cost_.pass_through_ns += 2 * kSlowEntryNs * static_cast<int64_t>(records.size());
  const uint64_t reading = LiveReadingTicks();
  std::vector<uint64_t> ticks;
  std::map<uint32_t, int> seen;
  for (const LiveRecord& record : records) {
    if (record.sequence == 0 || record.site != static_cast<uint32_t>(site->index) ||
        record.end < record.start)
      continue;
    if (seen[record.tid]++ > 0 && ticks.size() < static_cast<size_t>(count))
      ticks.push_back(std::max(record.end - record.start, reading + 1) - reading);
  }
  if (!ticks.empty()) return ticks;
  RETURN_IF_ERROR(MayAlter());
  return absl::DeadlineExceededError("the loop was not entered in time");
}

// The rank needs some time to write again to what the fork protected; after much more its own faults would be counted, too.
void ProcessInjector::LearnLaterFaults() {
  constexpr int64_t kSoonestNs = 100 * kNsPerMs, kLatestNs = 2 * kNsPerSecond;
  const int64_t elapsed = Now() - shadow_end_ns_;
  if (!faults_before_ || elapsed < kSoonestNs) return;
  auto faults = ReadMinorFaults(rank_.pid);
  if (elapsed <= kLatestNs && faults.ok() && *faults >= *faults_before_)
    shadow_cost_.LearnLaterFaults(forked_, *faults - *faults_before_);
  faults_before_.reset();
}

// Files may have been opened, mappings and devices mapped, a debugger may have come since the injector was opened.
absl::StatusOr<RankHazards> ProcessInjector::CheckHazards() {
  RETURN_IF_ERROR(CheckMappings(ProcFs(), rank_.pid, options_.max_stop_ns));
  ASSIGN_OR_RETURN(const MemoryFacts facts, memory_walk_.Facts());
  ASSIGN_OR_RETURN(RankHazards hazards, ReadHazards(rank_.pid, facts, options_.ranks_at_once));
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
  cached.cgroup = ReadCgroupMemory(rank_.pid);
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
  prediction.status = JudgeMemory(facts, node, cgroup, 0, options_.ranks_at_once);
  prediction.fork_ns = shadow_cost_.ForkNs(facts);
  prediction.later_fault_ns = shadow_cost_.LaterFaultNs(facts);
  prediction.copy_ns_per_mb = shadow_cost_.CopyNsPerMb();
  return prediction;
}

}  // namespace perfd::agent
