// ProcessInjector: recovery mode, from the plan to the answer. Outside P1: copies run in the threads of the rank.
#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/forking/preconditions.h"
#include "agent/shadow/injector/process_injector.h"
#include "agent/shadow/rank/shadow_charges.h"
#include "agent/shadow/recovery/give_back.h"
#include "agent/shadow/timing/live_reading.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kPollNs = kNsPerMs;
constexpr int64_t kLeaveNs = 200 * kNsPerMs;  // for threads that lost their CPU on the way
constexpr int64_t kExitNs = 2 * kNsPerMs;     // for the last instances to end
constexpr uint64_t kMostPasses = 100'000;     // of an instance; longer ones need no recovery mode
constexpr uint32_t kSkipsPerRun = 4;

int64_t Now() {
  return SystemClock().MonotonicNs();
}

// In the order of the pushes of the slow entry (SavedRegisters). Numbers of registers: agent/variant/instruction.h.
uint8_t WordOf(int reg) {
  constexpr uint8_t kWords[16] = {13, 16, 12, 11, kNoWord, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
  return reg < 0 || reg > 15 ? static_cast<uint8_t>(kNoWord) : kWords[reg];
}

RecoveryPlan PlanOf(const TripCount& trips) {
  RecoveryPlan plan{};
  plan.plus = WordOf(trips.step > 0 ? trips.bound : trips.counter);
  plan.minus = WordOf(trips.step > 0 ? trips.counter : trips.bound);
  plan.offset = static_cast<uint64_t>(trips.step > 0 ? trips.offset : -trips.offset);
  plan.mask = trips.bytes == 4 ? 0xffffffff : ~uint64_t{0};
  const auto step = static_cast<uint64_t>(trips.step > 0 ? trips.step : -trips.step);
  plan.most_distance = step > plan.mask / kMostPasses ? 0 : kMostPasses * step;
  return plan;
}

}  // namespace

absl::Status ProcessInjector::MayRecover(const PatchSite& site, const RecoveryRequest& request) {
  if (!rank_.options.recovery)
    return absl::PermissionDeniedError("recovery mode is not allowed here");
  const InstalledLoop& installed = site.built.installed;
  RETURN_IF_ERROR(installed.in_situ);
  if (request.round.empty() || request.round.size() > kMaxRuns || request.runs < 1)
    return absl::InvalidArgumentError("a recovery needs runs");
  for (int32_t copy : request.round) {
    if (copy == kNoCopy) continue;
    const auto i = static_cast<size_t>(copy);
    if (copy < 0 || i >= installed.in_situ_copies.size() || !installed.in_situ_copies[i])
      return absl::FailedPreconditionError(absl::StrCat("copy ", copy, " may not run in place"));
  }
  ASSIGN_OR_RETURN(uint32_t orphan, rank_.region->Read<uint32_t>(rank_.region->address() +
                                                                 offsetof(RegionHeader, orphan)));
  if (orphan != 0)
    return absl::FailedPreconditionError(
        absl::StrCat("shadow ", orphan, " of the rank could not be ended"));
  ASSIGN_OR_RETURN(const RankHazards hazards, CheckHazards());
  // Reading a device twice may not be the same as reading it once.
  if (std::any_of(hazards.maps.begin(), hazards.maps.end(), IsDevice))
    return absl::FailedPreconditionError("the rank has mapped a device: nothing is read twice");
  return absl::OkStatus();
}

absl::StatusOr<ShadowPlan> ProcessInjector::MakeRecoveryPlan(const PatchSite& site,
                                                             const RecoveryRequest& request) const {
  ShadowPlan plan{};
  plan.site = site.number();
  plan.recovery = PlanOf(site.built.trips);
  plan.recovery.limit = std::min(kMostRecoveries, static_cast<uint32_t>(request.runs));
  plan.recovery.skips = kSkipsPerRun * plan.recovery.limit;
  plan.recovery.most_ticks = rank_.ticks.ToTicks(std::max<int64_t>(0, request.most_added_ns));
  uint32_t selves = 0;
  for (int32_t copy : request.round) {
    if (copy == kNoCopy) {
      plan.runs[plan.run_count++].copy = site.empty_copy;
    } else {
      RETURN_IF_ERROR(AddRun(site, {.variant = copy}, &plan, &selves));
    }
    plan.runs[plan.run_count - 1].flags |= kRunInSitu;
  }
  return plan;
}

// A thread says that it is inside a copy before it stops being counted: this order misses nobody.
absl::StatusOr<bool> ProcessInjector::SomebodyReads() const {
  ASSIGN_OR_RETURN(const uint32_t in_situ, rank_.region->InSitu());
  if (in_situ != 0 || !rank_.options.recovery) return in_situ != 0;
  ASSIGN_OR_RETURN(const std::vector<ThreadRecord> records, rank_.region->Records());
  return std::any_of(records.begin(), records.end(),
                     [](const ThreadRecord& record) { return record.run.inside == kInCopy; });
}

absl::Status ProcessInjector::AwaitNobodyInSitu() {
  const int64_t deadline = Now() + kLeaveNs;
  ASSIGN_OR_RETURN(bool somebody, SomebodyReads());
  while (somebody && Now() < deadline) {
    absl::SleepFor(absl::Nanoseconds(kPollNs));
    ASSIGN_OR_RETURN(somebody, SomebodyReads());
  }
  if (somebody && rank_.options.recovery) {
    // Runs last some microseconds. Who is still inside has ended there, or a handler of its own has jumped out.
    RETURN_IF_ERROR(rank_.region->ForgetEndedThreads(rank_.info.pid));
    RETURN_IF_ERROR(GiveBackJumped());
    ASSIGN_OR_RETURN(somebody, SomebodyReads());
  }
  if (!somebody) return absl::OkStatus();
  return absl::UnavailableError("a thread is still at the last rendezvous or in the last recovery");
}

// Threads that are still inside, or whose handler is under way, are left alone.
absl::Status ProcessInjector::GiveBackJumped() {
  ASSIGN_OR_RETURN(const std::vector<ThreadRecord> records, rank_.region->Records());
  const GiveBackPlan plan = PlanGiveBack(records, *rank_.region, rank_.code.injection.caches);
  if (plan.records.empty()) return absl::OkStatus();
  const int64_t before = rank_.hold.stop_ns();
  const absl::StatusOr<HoldReply> reply = rank_.hold.Stop({plan.op}, StopPurpose::kTakesOut);
  rank_.hold.Audit("restore", nullptr, rank_.hold.stop_ns() - before, reply.status());
  RETURN_IF_ERROR(reply.status());
  const std::vector<uint8_t>& met = reply->results.at(0).bytes;
  for (size_t i = 0; i < std::min(met.size(), plan.records.size()); ++i) {
    const uint64_t at = rank_.region->RecordAddress(plan.records[i]) + offsetof(ThreadRecord, run);
    if (met[i] == 1)
      RETURN_IF_ERROR(rank_.region->Write(at + offsetof(RunInSitu, inside), uint32_t{kJumped}));
  }
  return absl::OkStatus();
}

// Nobody reads the plan before the mode says so, and nobody may still read the last one.
absl::Status ProcessInjector::ArmRecovery(const PatchSite& site, const ShadowPlan& plan) {
  const uint64_t at = rank_.region->SiteAddress(site.number());
  ASSIGN_OR_RETURN(uint32_t busy, rank_.region->Read<uint32_t>(rank_.region->address() +
                                                               offsetof(RegionHeader, busy)));
  if (busy != 0) return absl::UnavailableError("the last shadow is not over yet");
  RETURN_IF_ERROR(rank_.region->SetMode(site.number(), kModeIdle));
  RETURN_IF_ERROR(AwaitNobodyInSitu());
  RETURN_IF_ERROR(rank_.region->ForgetEndedThreads(rank_.info.pid));
  RETURN_IF_ERROR(rank_.region->Beat());
  RETURN_IF_ERROR(rank_.region->WriteMany(rank_.region->ResultsAddress(),
                                          std::vector<RecoveryResult>(plan.recovery.limit)));
  RETURN_IF_ERROR(rank_.region->Write(rank_.region->PlanAddress(), plan));
  RETURN_IF_ERROR(rank_.region->Write(at + offsetof(Site, recoveries), uint32_t{0}));
  RETURN_IF_ERROR(rank_.region->Write(at + offsetof(Site, recovery_skips), uint32_t{0}));
  RETURN_IF_ERROR(rank_.region->Write(at + offsetof(Site, recovery_ticks), uint64_t{0}));
  return rank_.region->SetMode(site.number(), kModeRecovery);
}

// True: it ended by its own limits.
absl::StatusOr<bool> ProcessInjector::AwaitRecovery(const PatchSite& site, const ShadowPlan& plan,
                                                    int64_t timeout_ns) {
  const uint64_t at = rank_.region->SiteAddress(site.number()) + offsetof(Site, generation_done);
  const int64_t deadline = Now() + timeout_ns;
  absl::StatusOr<uint32_t> done = 0;
  while (done.ok() && *done != plan.generation && Now() < deadline && !rank_.hold.Cancelled()) {
    absl::SleepFor(absl::Nanoseconds(kPollNs));
    const absl::Status beat = rank_.region->BeatIfDue();
    done = beat.ok() ? rank_.region->Read<uint32_t>(at) : absl::StatusOr<uint32_t>(beat);
  }
  RETURN_IF_ERROR(rank_.region->SetMode(site.number(), kModeIdle));
  RETURN_IF_ERROR(done.status());
  absl::Status left = AwaitNobodyInSitu();
  if (absl::IsUnavailable(left)) {
    // A handler may be under way, or the thread in the loop itself: its next entry tells, if that one is looked at.
    RETURN_IF_ERROR(rank_.region->Beat());
    RETURN_IF_ERROR(rank_.region->SetMode(site.number(), kModeEntryCount));
    left = AwaitNobodyInSitu();
    RETURN_IF_ERROR(rank_.region->SetMode(site.number(), kModeIdle));
  }
  RETURN_IF_ERROR(left);
  absl::SleepFor(absl::Nanoseconds(kExitNs));
  return *done == plan.generation;
}

// No thread can have been held up for longer than `longest_ns`: the figures are the rank's own.
absl::StatusOr<RecoveryAnswer> ProcessInjector::CollectRecovery(const PatchSite& site,
                                                                const ShadowPlan& plan,
                                                                int64_t longest_ns) {
  ASSIGN_OR_RETURN(const Site state,
                   rank_.region->Read<Site>(rank_.region->SiteAddress(site.number())));
  const uint32_t count = std::min(state.recoveries, plan.recovery.limit);
  ASSIGN_OR_RETURN(std::vector<RecoveryResult> results,
                   rank_.region->ReadMany<RecoveryResult>(rank_.region->ResultsAddress(), count));
  RecoveryAnswer answer;
  answer.skipped = state.recovery_skips;
  std::map<uint32_t, int64_t> added;  // by thread
  for (const RecoveryResult& result : results) added[result.tid] = 0;
  std::map<std::tuple<uint32_t, uint64_t, uint32_t>, uint32_t> clusters;
  const uint64_t reading = LiveReadingTicks();
  for (const RecoveryResult& result : results) {
    if (result.generation != plan.generation) continue;
    int64_t& sum = added[result.tid];
    const uint64_t ticks = std::min(result.added, rank_.ticks.ToTicks(longest_ns));
    sum = std::min(longest_ns, sum + rank_.ticks.ToNs(ticks) + 2 * kSlowEntryNs);
    RecoveryRun run;
    run.step = static_cast<int32_t>(result.turn % plan.run_count);
    run.thread = static_cast<int32_t>(std::distance(added.begin(), added.find(result.tid)));
    const auto key = std::tuple(result.tid, result.distance, result.turn / plan.run_count);
    run.cluster = clusters.emplace(key, clusters.size()).first->second;
    run.cycles = result.cycles;
    run.original = std::max(result.original, reading) - reading;
    run.iterations = result.iterations;
    answer.runs.push_back(run);
  }
  for (const auto& [tid, ns] : added) answer.added_ns = std::max(answer.added_ns, ns);
  answer.added_ns += static_cast<int64_t>(answer.skipped) * 2 * kSlowEntryNs;
  return answer;
}

absl::StatusOr<RecoveryAnswer> ProcessInjector::RunRecovery(const PatchSite& site,
                                                            const ShadowPlan& plan,
                                                            int64_t timeout_ns) {
  const int64_t begin = Now();
  RETURN_IF_ERROR(ArmRecovery(site, plan));
  ASSIGN_OR_RETURN(const bool enough, AwaitRecovery(site, plan, timeout_ns));
  ASSIGN_OR_RETURN(RecoveryAnswer answer, CollectRecovery(site, plan, Now() - begin));
  answer.enough = enough;
  rank_.cost.recoveries += answer.runs.size();
  rank_.cost.recovery_ns += answer.added_ns;
  if (answer.runs.empty()) {
    return absl::DeadlineExceededError(
        answer.skipped == 0 ? "the loop was not entered in time"
                            : "every instance was too long, or of another length, to run in place");
  }
  return answer;
}

absl::StatusOr<RecoveryAnswer> ProcessInjector::Recover(const RecoveryRequest& request) {
  ASSIGN_OR_RETURN(PatchSite * site, rank_.PatchedSiteOf(request.loop));
  RETURN_IF_ERROR(MayRecover(*site, request));
  ASSIGN_OR_RETURN(ShadowPlan plan, MakeRecoveryPlan(*site, request));
  plan.generation = ++rank_.generation;
  absl::StatusOr<RecoveryAnswer> answer = RunRecovery(*site, plan, request.timeout_ns);
  if (!answer.ok()) rank_.region->SetMode(site->number(), kModeIdle).IgnoreError();
  rank_.hold.Audit("recovery", site, 0, answer.status());
  return answer;
}

}  // namespace perfd::agent
