// client/commands/one_profile.h - commands that take a profile's id, ask one thing and show where the profile stands.
#ifndef CLIENT_COMMANDS_ONE_PROFILE_H_
#define CLIENT_COMMANDS_ONE_PROFILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/commands/command.h"
#include "client/render/text_style.h"
#include "client/rpc/daemon_client.h"

namespace perfd::client {

using AskOneProfile = absl::StatusOr<ProfileStatus> (DaemonClient::*)(absl::string_view id);
using ShowStatus = std::string (*)(const ProfileStatus& status, const TextStyle& style);

// Declares ID on `app`. With --json the answer is the status, else what `show` makes of it.
CommandRun DefineOneProfile(CLI::App& app, AskOneProfile ask, ShowStatus show);

}  // namespace perfd::client

#endif  // CLIENT_COMMANDS_ONE_PROFILE_H_
