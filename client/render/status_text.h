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

// "5 of 12 hot loops known, about 2 min to go"; empty: no loop was chosen yet.
std::string KnownText(const ProfileStatus& status);
// Why it ended; empty: it has not, or nobody told.
std::string EndText(EndReason end);
// "2 min" from 90 s, else in seconds.
std::string AboutText(int64_t ns);

std::string StateText(ProfileState state, const TextStyle& style);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_STATUS_TEXT_H_
