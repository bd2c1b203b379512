// client/render/status_text.h - where profiles stand, as text.
#ifndef CLIENT_RENDER_STATUS_TEXT_H_
#define CLIENT_RENDER_STATUS_TEXT_H_

#include <string>
#include <vector>

#include "client/render/text_style.h"
#include "core/model/profile.h"

namespace perfd::client {

std::string RenderStatus(const ProfileStatus& status, const TextStyle& style);
std::string RenderProfileList(const std::vector<ProfileStatus>& profiles, const TextStyle& style);

// "command lulesh2.0", "pids 1, 2 on node17", "job 4711".
std::string TargetText(const TargetSpec& target);

std::string StateText(ProfileState state, const TextStyle& style);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_STATUS_TEXT_H_
