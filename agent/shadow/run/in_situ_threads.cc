#include "agent/shadow/run/in_situ_threads.h"

#include <algorithm>
#include <vector>

#include "absl/time/clock.h"
#include "agent/shadow/recovery/give_back.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kPollNs = kNsPerMs;
constexpr int64_t kLeaveNs = 200 * kNsPerMs;  // for threads that lost their CPU on the way

int64_t Now() {
  return SystemClock().MonotonicNs();
}

// A thread says that it is inside a copy before it stops being counted: this order misses nobody.
absl::StatusOr<bool> SomebodyReads(const InjectedRank& rank) {
  ASSIGN_OR_RETURN(const uint32_t in_situ, rank.region->InSitu());
  if (in_situ != 0 || !rank.options.recovery) return in_situ != 0;
  ASSIGN_OR_RETURN(const std::vector<ThreadRecord> records, rank.region->Records());
  return std::any_of(records.begin(), records.end(),
                     [](const ThreadRecord& record) { return record.run.inside == kInCopy; });
}

// Threads that are still inside, or whose handler is under way, are left alone.
absl::Status GiveBackJumped(InjectedRank& rank) {
  ASSIGN_OR_RETURN(const std::vector<ThreadRecord> records, rank.region->Records());
  const GiveBackPlan plan = PlanGiveBack(records, *rank.region, rank.code.injection.caches);
  if (plan.records.empty()) return absl::OkStatus();
  const int64_t before = rank.hold.stop_ns();
  const absl::StatusOr<HoldReply> reply = rank.hold.Stop({plan.op}, StopPurpose::kTakesOut);
  rank.hold.Audit("restore", nullptr, rank.hold.stop_ns() - before, reply.status());
  RETURN_IF_ERROR(reply.status());
  const std::vector<uint8_t>& met = reply->results.at(0).bytes;
  for (size_t i = 0; i < std::min(met.size(), plan.records.size()); ++i) {
    const uint64_t at = rank.region->RecordAddress(plan.records[i]) + offsetof(ThreadRecord, run);
    if (met[i] == 1)
      RETURN_IF_ERROR(rank.region->Write(at + offsetof(RunInSitu, inside), uint32_t{kJumped}));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AwaitNobodyInSitu(InjectedRank& rank) {
  const int64_t deadline = Now() + kLeaveNs;
  ASSIGN_OR_RETURN(bool somebody, SomebodyReads(rank));
  while (somebody && Now() < deadline) {
    absl::SleepFor(absl::Nanoseconds(kPollNs));
    ASSIGN_OR_RETURN(somebody, SomebodyReads(rank));
  }
  if (somebody && rank.options.recovery) {
    // Runs last some microseconds. Who is still inside has ended there, or a handler of its own has jumped out.
    RETURN_IF_ERROR(rank.region->ForgetEndedThreads(rank.info.pid));
    RETURN_IF_ERROR(GiveBackJumped(rank));
    ASSIGN_OR_RETURN(somebody, SomebodyReads(rank));
  }
  if (!somebody) return absl::OkStatus();
  return absl::UnavailableError("a thread is still at the last rendezvous or in the last recovery");
}

}  // namespace perfd::agent
