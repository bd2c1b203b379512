// client/commands/hook/guard.h - what keeps a scheduler's prolog and epilog safe from us: the process ends with exit code 0
// and in time, whatever happens to it.
//
// Shape    IsHookCall, then ArmHookGuard before anything else is done, EndHookCall as the last thing.
// Units    the timeout is that of --timeout, 10 ms to 30 s, kHookTimeout when there is none or it makes no sense.
// Errors   none: crashes, signals and the timeout end the process with 0; one line on standard error says why, unless
//          that would have to wait.
// Source   signal-safety(7): _exit, poll, write. slurm.conf(5): a prolog that fails drains its node.
#ifndef CLIENT_COMMANDS_HOOK_GUARD_H_
#define CLIENT_COMMANDS_HOOK_GUARD_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace perfd::client {

inline constexpr absl::Duration kHookTimeout = absl::Milliseconds(300);

// `perfctl hook ...` but for `hook list` and requests for help. `arguments` without the program's name.
bool IsHookCall(const std::vector<std::string>& arguments);

absl::Duration HookTimeoutOf(const std::vector<std::string>& arguments);

void ArmHookGuard(absl::Duration timeout);

// Ends the process: with the first line of `text`, and exit code 0.
[[noreturn]] void EndHookCall(absl::string_view text);

}  // namespace perfd::client

#endif  // CLIENT_COMMANDS_HOOK_GUARD_H_
