// client/render/site/limits_text.h - perfd's limits and their use as text and JSON.
//
// Shape    JSON {"limits": [{key, what, per (everyone, user, address, stream), unit, period_s (0: what is held), value, kept, bound,
//          used (null: not counted by user), refusals, instead, most: [{uid, used}]}]}
#ifndef CLIENT_RENDER_SITE_LIMITS_TEXT_H_
#define CLIENT_RENDER_SITE_LIMITS_TEXT_H_

#include <string>
#include <vector>

#include "core/model/site/limit_use.h"

namespace perfd::client {

// What is one's own, what is everyone's, and what to do about limits that are nearly reached.
std::string RenderLimits(const std::vector<LimitUse>& limits);
std::string LimitsToJsonLine(const std::vector<LimitUse>& limits);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_SITE_LIMITS_TEXT_H_
