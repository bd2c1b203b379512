#include "client/commands/exit_code.h"

#include <algorithm>

#include "core/json/status_json.h"

namespace perfd::client {
namespace {

ExitCode ExitCodeOfNotice(absl::StatusCode code) {
  if (code == absl::StatusCode::kNotFound) return ExitCode::kNotFound;
  if (code == absl::StatusCode::kPermissionDenied) return ExitCode::kPermission;
  return ExitCode::kFailure;
}

}  // namespace

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kNotFound:
      return ExitCode::kNotFound;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return ExitCode::kPermission;
    case absl::StatusCode::kInvalidArgument:
      return ExitCode::kUsage;
    case absl::StatusCode::kDeadlineExceeded:
      return ExitCode::kTimeout;
    default:
      return ExitCode::kFailure;
  }
}

ExitCode SubmitExitCodeOf(const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) return ExitCode::kInvalidSpec;
  if (absl::IsFailedPrecondition(status)) return ExitCode::kUnsafeTarget;
  if (absl::IsOutOfRange(status)) return ExitCode::kBudget;
  return ExitCodeOf(status);
}

bool RefusesLaunchers(const ProfileStatus& status) {
  return std::any_of(status.notices.begin(), status.notices.end(), [](const Notice& notice) {
    return notice.launchers.has_value() &&
           notice.launchers->disposition == LauncherNote::Disposition::kRefused;
  });
}

ExitCode ExitCodeOf(const ProfileStatus& status) {
  if (status.state == ProfileState::kPartial || status.state == ProfileState::kCancelled)
    return ExitCode::kPartial;
  if (status.state != ProfileState::kFailed) return ExitCode::kOk;
  if (RefusesLaunchers(status)) return ExitCode::kUnsafeTarget;
  const auto error = std::find_if(
      status.notices.begin(), status.notices.end(),
      [](const Notice& notice) { return notice.severity == Notice::Severity::kError; });
  return error == status.notices.end() ? ExitCode::kFailure : ExitCodeOfNotice(error->code);
}

const char* ErrorKey(ExitCode exit_code, absl::StatusCode status_code) {
  switch (exit_code) {
    case ExitCode::kUsage:
      return "usage";
    case ExitCode::kNotFound:
      return "not_found";
    case ExitCode::kPermission:
      return "permission_denied";
    case ExitCode::kInvalidSpec:
      return "invalid_spec";
    case ExitCode::kUnsafeTarget:
      return "unsafe_target";
    case ExitCode::kBudget:
      return "budget";
    case ExitCode::kPartial:
      return "partial";
    case ExitCode::kTimeout:
      return "timeout";
    default:
      return StatusCodeKey(status_code);
  }
}

}  // namespace perfd::client
