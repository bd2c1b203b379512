// daemon/control/target_text.h - a target in words, for people: "command 'lulesh' of user alice".
#ifndef DAEMON_CONTROL_TARGET_TEXT_H_
#define DAEMON_CONTROL_TARGET_TEXT_H_

#include <string>

#include "core/model/identity.h"
#include "core/model/profile_spec.h"

namespace perfd {

std::string TargetText(const ProfileSpec& spec, const Requester& requester);

}  // namespace perfd

#endif  // DAEMON_CONTROL_TARGET_TEXT_H_
