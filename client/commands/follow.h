// client/commands/follow.h - follow a profile to its end: live view, log lines or JSON Lines.
#ifndef CLIENT_COMMANDS_FOLLOW_H_
#define CLIENT_COMMANDS_FOLLOW_H_

#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/commands/command.h"

namespace perfd::client {

struct FollowOptions {
  std::string id;
  absl::Duration timeout = absl::InfiniteDuration();
  int top = 10;
  bool report = false;  // print the report at the end
  bool to_err = false;  // progress goes to `err`: `out` carries other data
};

// Shows the progress (not with --json when `to_err`) until the profile is over; its last status. kCancelled after an
// interrupt.
absl::StatusOr<ProfileStatus> Await(Terminal& terminal, DaemonClient& daemon,
                                    const FollowOptions& options);

// A FAILED profile has no report; its notices say why.
void PrintFailure(Terminal& terminal, const ProfileStatus& status, ExitCode exit_code);

// The exit code of the profile's final state; kFailure after an interrupt, which leaves the profile running.
absl::StatusOr<ExitCode> Follow(Terminal& terminal, DaemonClient& daemon,
                                const FollowOptions& options);

// "30s" as a duration, empty as for ever.
absl::StatusOr<absl::Duration> ParseTimeout(const std::string& text);

}  // namespace perfd::client

#endif  // CLIENT_COMMANDS_FOLLOW_H_
