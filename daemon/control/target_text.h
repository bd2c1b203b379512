// daemon/control/target_text.h - a target, and why it is measured no more, in words: "command 'lulesh' of user alice".
#ifndef DAEMON_CONTROL_TARGET_TEXT_H_
#define DAEMON_CONTROL_TARGET_TEXT_H_

#include <string>

#include "core/model/identity.h"
#include "core/model/profile.h"
#include "core/model/profile_spec.h"

namespace perfd::daemon {

// `job`: what the scheduler calls a job that is followed; empty: "job 4711".
std::string TargetText(const ProfileSpec& spec, const Requester& requester,
                       const std::string& job = "");

// What agents are told; kNone: of a job that has ended on a node.
std::string StopText(EndReason end);

}  // namespace perfd::daemon

#endif  // DAEMON_CONTROL_TARGET_TEXT_H_
