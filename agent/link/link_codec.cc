#include "agent/link/link_codec.h"

#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/wire/wire.h"

namespace perfd::agent {
namespace {

constexpr int64_t kMostProbeNs = 60 * kNsPerSecond;
constexpr int64_t kMostWaitNs = 7 * 24 * 3600 * kNsPerSecond;

}  // namespace

v1::SessionUpdate EncodeUpdate(const SessionUpdate& update) {
  v1::SessionUpdate out;
  out.set_profile_id(update.profile_id);
  out.set_phase(wire::ToProto(update.phase));
  for (const RankInfo& rank : update.ranks) *out.add_ranks() = wire::ToProto(rank);
  out.set_threads(update.threads);
  for (const Notice& notice : update.notices) *out.add_notices() = wire::ToProto(notice);
  out.set_last_sequence(update.last_sequence);
  out.set_first_sample(update.first_sample);
  return out;
}

absl::StatusOr<SessionRequest> DecodeStart(const v1::StartCommand& start) {
  SessionRequest request;
  request.profile_id = start.profile_id();
  if (request.profile_id.empty())
    return absl::InvalidArgumentError("StartCommand.profile_id is empty");
  ASSIGN_OR_RETURN(request.spec, wire::FromProto(start.spec()));
  request.requester = wire::FromProto(start.requester());
  request.remaining_ns = start.remaining_ns();
  // The duration of a dry run is that of the profile it stands for: its own look may take longer than a short one.
  const int64_t most_ns = request.spec.duration_ns + (request.spec.dry_run ? kMostProbeNs : 0);
  if (request.remaining_ns <= 0 || request.remaining_ns > most_ns)
    return absl::InvalidArgumentError(
        "StartCommand.remaining_ns is not within the profile's duration");
  request.wait_ns = start.wait_ns();
  if (request.wait_ns < 0 || request.wait_ns > kMostWaitNs)
    return absl::InvalidArgumentError("StartCommand.wait_ns is not within a week");
  return request;
}

v1::DoctorResult EncodeDoctor(uint64_t request_id, const std::vector<NodeCheck>& checks) {
  v1::DoctorResult result;
  result.set_request_id(request_id);
  for (const NodeCheck& check : checks) {
    v1::DoctorCheck& out = *result.add_checks();
    out.set_name(check.name);
    out.set_ok(check.ok);
    out.set_optional(check.optional);
    out.set_found(check.found);
    out.set_fix(check.fix);
  }
  return result;
}

SessionUpdate FailedUpdate(const std::string& profile_id, const std::string& node,
                           const absl::Status& status) {
  SessionUpdate update;
  update.profile_id = profile_id;
  update.phase = NodeProgress::Phase::kFailed;
  update.notices.push_back({.severity = Notice::Severity::kError,
                            .code = status.code(),
                            .node = node,
                            .text = std::string(status.message())});
  return update;
}

}  // namespace perfd::agent
