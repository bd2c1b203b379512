// client/commands/follow.h - submit a profile and follow it to its end: live view, log lines or JSON Lines.
//
// Errors   Ask: those of DaemonClient::Submit; kUnimplemented: a perfd that does not know `tree` took it for less.
// Bounds   AwaitRefusal: three seconds; usually some milliseconds, a probe (250 ms) where a process has children.
#ifndef CLIENT_COMMANDS_FOLLOW_H_
#define CLIENT_COMMANDS_FOLLOW_H_

#include <iosfwd>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/commands/command.h"

namespace perfd::client {

// A perfd that cannot measure until it knows is asked for a fixed time: the answer's spec tells.
absl::StatusOr<ProfileStatus> Ask(DaemonClient& daemon, const ProfileSpec& spec);

// Waits until the agent knows the processes that were named by pid. The status that refuses launchers, or nothing.
std::optional<ProfileStatus> AwaitRefusal(DaemonClient& daemon, const ProfileStatus& submitted);

inline constexpr char kOnDoneHelp[] =
    "A shell command that is run when the profile is over, with PERFD_PROFILE, PERFD_STATE and "
    "PERFD_END in its environment";

struct FollowOptions {
  std::string id;
  absl::Duration timeout = absl::InfiniteDuration();
  int top = 10;
  bool report = false;       // print the report at the end
  bool to_err = false;       // progress goes to `err`: `out` carries other data
  std::string on_done = {};  // a shell command for the end; empty: none
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
