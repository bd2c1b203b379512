// client/notify/on_done.h - runs the user's own command when a profile is over.
//
// Shape    by /bin/sh -c, with perfctl's standard streams; PERFD_PROFILE, PERFD_STATE and PERFD_END are in its environment.
// Errors   it could not be started, or did not end with 0.
// Bounds   waited for as long as it runs.
#ifndef CLIENT_NOTIFY_ON_DONE_H_
#define CLIENT_NOTIFY_ON_DONE_H_

#include <string>

#include "absl/status/status.h"
#include "core/model/profile.h"

namespace perfd::client {

absl::Status RunOnDone(const std::string& command, const ProfileStatus& status);

}  // namespace perfd::client

#endif  // CLIENT_NOTIFY_ON_DONE_H_
