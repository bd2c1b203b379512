#include "agent/shadow/run/in_situ_run.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/shadow/forking/preconditions.h"
#include "agent/shadow/rank/shadow_charges.h"
#include "agent/shadow/run/in_situ_threads.h"
#include "agent/shadow/run/make_plan.h"
#include "agent/shadow/timing/live_reading.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kPollNs = kNsPerMs;
constexpr int64_t kExitNs = 2 * kNsPerMs;  // for the last instances to end
constexpr uint64_t kMostPasses = 100'000;  // of an instance; longer ones need no recovery mode
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

absl::Status InSituRun::CheckCopies() const {
  const InstalledLoop& installed = site_.built.installed;
  for (int32_t copy : request_.round) {
    if (copy == kNoCopy) continue;
    const auto i = static_cast<size_t>(copy);
    if (copy < 0 || i >= installed.in_situ_copies.size() || !installed.in_situ_copies[i])
      return absl::FailedPreconditionError(absl::StrCat("copy ", copy, " may not run in place"));
  }
  return absl::OkStatus();
}

absl::Status InSituRun::MayRun() {
  if (!rank_.options.recovery)
    return absl::PermissionDeniedError("recovery mode is not allowed here");
  const InstalledLoop& installed = site_.built.installed;
  RETURN_IF_ERROR(installed.in_situ);
  if (request_.round.empty() || request_.round.size() > kMaxRuns || request_.runs < 1)
    return absl::InvalidArgumentError("a recovery needs runs");
  RETURN_IF_ERROR(CheckCopies());
  ASSIGN_OR_RETURN(uint32_t orphan, rank_.region->Read<uint32_t>(rank_.region->address() +
                                                                 offsetof(RegionHeader, orphan)));
  if (orphan != 0)
    return absl::FailedPreconditionError(
        absl::StrCat("shadow ", orphan, " of the rank could not be ended"));
  ASSIGN_OR_RETURN(const RankHazards hazards, forecast_.CheckHazards());
  // Reading a device twice may not be the same as reading it once.
  if (std::any_of(hazards.maps.begin(), hazards.maps.end(), IsDevice))
    return absl::FailedPreconditionError("the rank has mapped a device: nothing is read twice");
  return absl::OkStatus();
}

absl::Status InSituRun::Plan() {
  plan_.site = site_.number();
  plan_.recovery = PlanOf(site_.built.trips);
  plan_.recovery.limit = std::min(kMostRecoveries, static_cast<uint32_t>(request_.runs));
  plan_.recovery.skips = kSkipsPerRun * plan_.recovery.limit;
  plan_.recovery.most_ticks = rank_.ticks.ToTicks(std::max<int64_t>(0, request_.most_added_ns));
  uint32_t selves = 0;
  for (int32_t copy : request_.round) {
    if (copy == kNoCopy) {
      plan_.runs[plan_.run_count++].copy = site_.empty_copy;
    } else {
      RETURN_IF_ERROR(AddRun(site_, {.variant = copy}, &plan_, &selves));
    }
    plan_.runs[plan_.run_count - 1].flags |= kRunInSitu;
  }
  return absl::OkStatus();
}

// Nobody reads the plan before the mode says so, and nobody may still read the last one.
absl::Status InSituRun::Arm() {
  const uint64_t at = SiteAddress();
  ASSIGN_OR_RETURN(const bool busy, rank_.region->IsBusy());
  if (busy) return absl::UnavailableError("the last shadow is not over yet");
  RETURN_IF_ERROR(SetMode(kModeIdle));
  RETURN_IF_ERROR(AwaitNobodyInSitu(rank_));
  RETURN_IF_ERROR(rank_.region->ForgetEndedThreads(rank_.info.pid));
  RETURN_IF_ERROR(rank_.region->Beat());
  RETURN_IF_ERROR(rank_.region->WriteMany(rank_.region->ResultsAddress(),
                                          std::vector<RecoveryResult>(plan_.recovery.limit)));
  RETURN_IF_ERROR(rank_.region->Write(rank_.region->PlanAddress(), plan_));
  RETURN_IF_ERROR(rank_.region->Write(at + offsetof(Site, recoveries), uint32_t{0}));
  RETURN_IF_ERROR(rank_.region->Write(at + offsetof(Site, recovery_skips), uint32_t{0}));
  RETURN_IF_ERROR(rank_.region->Write(at + offsetof(Site, recovery_ticks), uint64_t{0}));
  return SetMode(kModeRecovery);
}

// True: it ended by its own limits.
absl::StatusOr<bool> InSituRun::Await() {
  const uint64_t at = SiteAddress() + offsetof(Site, generation_done);
  const int64_t deadline = Now() + request_.timeout_ns;
  absl::StatusOr<uint32_t> done = 0;
  while (done.ok() && *done != plan_.generation && Now() < deadline && !rank_.hold.Cancelled()) {
    absl::SleepFor(absl::Nanoseconds(kPollNs));
    const absl::Status beat = rank_.region->BeatIfDue();
    done = beat.ok() ? rank_.region->Read<uint32_t>(at) : absl::StatusOr<uint32_t>(beat);
  }
  RETURN_IF_ERROR(SetMode(kModeIdle));
  RETURN_IF_ERROR(done.status());
  absl::Status left = AwaitNobodyInSitu(rank_);
  if (absl::IsUnavailable(left)) {
    // A handler may be under way, or the thread in the loop itself: its next entry tells, if that one is looked at.
    RETURN_IF_ERROR(rank_.region->Beat());
    RETURN_IF_ERROR(SetMode(kModeEntryCount));
    left = AwaitNobodyInSitu(rank_);
    RETURN_IF_ERROR(SetMode(kModeIdle));
  }
  RETURN_IF_ERROR(left);
  absl::SleepFor(absl::Nanoseconds(kExitNs));
  return *done == plan_.generation;
}

// No thread can have been held up for longer than `longest_ns`: the figures are the rank's own.
absl::StatusOr<RecoveryAnswer> InSituRun::Collect(int64_t longest_ns) const {
  ASSIGN_OR_RETURN(const Site state, rank_.region->Read<Site>(SiteAddress()));
  const uint32_t count = std::min(state.recoveries, plan_.recovery.limit);
  ASSIGN_OR_RETURN(std::vector<RecoveryResult> results,
                   rank_.region->ReadMany<RecoveryResult>(rank_.region->ResultsAddress(), count));
  RecoveryAnswer answer;
  answer.skipped = state.recovery_skips;
  std::map<uint32_t, int64_t> added;  // by thread
  for (const RecoveryResult& result : results) added[result.tid] = 0;
  std::map<std::tuple<uint32_t, uint64_t, uint32_t>, uint32_t> clusters;
  const uint64_t reading = LiveReadingTicks();
  for (const RecoveryResult& result : results) {
    if (result.generation != plan_.generation) continue;
    int64_t& sum = added[result.tid];
    const uint64_t ticks = std::min(result.added, rank_.ticks.ToTicks(longest_ns));
    sum = std::min(longest_ns, sum + rank_.ticks.ToNs(ticks) + 2 * kSlowEntryNs);
    RecoveryRun run;
    run.step = static_cast<int32_t>(result.turn % plan_.run_count);
    run.thread = static_cast<int32_t>(std::distance(added.begin(), added.find(result.tid)));
    const auto key = std::tuple(result.tid, result.distance, result.turn / plan_.run_count);
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

absl::StatusOr<RecoveryAnswer> InSituRun::RunPlanned() {
  const int64_t begin = Now();
  RETURN_IF_ERROR(Arm());
  ASSIGN_OR_RETURN(const bool enough, Await());
  ASSIGN_OR_RETURN(RecoveryAnswer answer, Collect(Now() - begin));
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

absl::StatusOr<RecoveryAnswer> InSituRun::Run() {
  RETURN_IF_ERROR(MayRun());
  RETURN_IF_ERROR(Plan());
  plan_.generation = ++rank_.generation;
  absl::StatusOr<RecoveryAnswer> answer = RunPlanned();
  if (!answer.ok()) SetMode(kModeIdle).IgnoreError();
  rank_.hold.Audit("recovery", &site_, 0, answer.status());
  return answer;
}

}  // namespace perfd::agent
