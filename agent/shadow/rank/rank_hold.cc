#include "agent/shadow/rank/rank_hold.h"

#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/procfs/admission.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/rank/shadow_charges.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kPatienceNs = 2 * kNsPerSecond;
constexpr int64_t kRestorePatienceNs = 5 * kNsPerSecond;

std::string Hex(const std::array<uint8_t, kJumpBytes>& bytes) {
  std::string text;
  for (uint8_t byte : bytes) absl::StrAppend(&text, absl::Hex(byte, absl::kZeroPad2));
  return text;
}

}  // namespace

absl::Status RankHold::StillAdmitted() const {
  return CheckUnchanged(*options_.admitted, ProcFs(), rank_.pid);
}

absl::Status RankHold::MayAlter() const {
  if (Cancelled()) return absl::CancelledError("altering was ended before it came to this loop");
  return StillAdmitted();
}

absl::StatusOr<HoldReply> RankHold::Stop(std::vector<HoldOp> ops, StopPurpose purpose) {
  auto reply = TryStop(std::move(ops), purpose);
  if (reply.ok() && !reply->status.ok()) return reply->status;
  return reply;
}

absl::StatusOr<HoldReply> RankHold::TryStop(std::vector<HoldOp> ops, StopPurpose purpose) {
  std::vector<int64_t> stops;
  HoldRequest request{rank_.pid, rank_.start_ticks, options_.max_stop_ns, std::move(ops)};
  if (purpose == StopPurpose::kAlters) request.admitted = options_.admitted;
  const int64_t begin = SystemClock().MonotonicNs();
  auto reply = HoldPatiently(*options_.tracer, request, begin + kPatienceNs, &stops);
  ChargeStops(stops, cost_);
  if (!reply.ok() || CallMayBeLost(*reply)) tracer_died_ = true;
  return reply;
}

absl::Status RankHold::StopToRestore(const Injection& injection, RestoreResult* result) {
  absl::Status status = RestoreRank(
      injection,
      {options_.tracer, options_.max_stop_ns, kRestorePatienceNs, tracer_died_, options_.answers},
      result);
  ChargeStops(result->stops_ns, cost_);
  return status;
}

void RankHold::Audit(const char* action, const PatchSite* site, int64_t pause_ns,
                     const absl::Status& outcome) const {
  if (!options_.audit) return;
  AuditEntry entry;
  entry.unix_ns = SystemClock().UnixNs();
  entry.node = rank_.node;
  entry.pid = rank_.pid;
  entry.action = action;
  entry.pause_ns = pause_ns;
  entry.outcome = outcome.ok() ? "ok" : std::string(outcome.message());
  if (site != nullptr) {
    entry.loop_id = site->loop_id;
    entry.address = site->built.patch.address;
    entry.original_bytes = Hex(site->built.patch.original);
    entry.written_bytes = Hex(site->built.jump);
  }
  options_.audit(std::move(entry));
}

}  // namespace perfd::agent
