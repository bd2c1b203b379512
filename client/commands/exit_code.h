// client/commands/exit_code.h - what scripts see: the exit codes of perfctl and the stable names of errors.
//
// Source   design: exit codes. 124 as timeout(1).
#ifndef CLIENT_COMMANDS_EXIT_CODE_H_
#define CLIENT_COMMANDS_EXIT_CODE_H_

#include "absl/status/status.h"
#include "core/model/profile.h"

namespace perfd::client {

enum class ExitCode : int {
  kOk = 0,
  kFailure = 1,
  kUsage = 2,
  kNotFound = 3,
  kPermission = 4,
  kInvalidSpec = 5,
  kUnsafeTarget = 6,
  kBudget = 7,
  kPartial = 8,
  kTimeout = 124,
};

// For an error of a request about a profile that exists or not.
ExitCode ExitCodeOf(const absl::Status& status);

// For an error of Submit: the request itself may be invalid (kInvalidArgument), unsafe (kFailedPrecondition) or not to be
// had within its budget (kOutOfRange). A limit of the daemon (kResourceExhausted: too many active profiles, a full disk)
// is a plain failure: the same request may succeed later.
ExitCode SubmitExitCodeOf(const absl::Status& status);

// A process that was named only waits for its children, and there is nothing else to be measured.
bool RefusesLaunchers(const ProfileStatus& status);

// For a profile in a final state: PARTIAL and CANCELLED are kPartial, FAILED is what its first error notice says; launchers
// that are refused are kUnsafeTarget.
ExitCode ExitCodeOf(const ProfileStatus& status);

// The `code` of the JSON error object for exit codes that name a cause of their own; else the status' own name.
const char* ErrorKey(ExitCode exit_code, absl::StatusCode status_code);

}  // namespace perfd::client

#endif  // CLIENT_COMMANDS_EXIT_CODE_H_
