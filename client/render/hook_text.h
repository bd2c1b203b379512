// client/render/hook_text.h - the latest decisions about jobs of schedulers, for people and for scripts.
//
// Shape    JSON: policy, policy_error, active, today, decisions{name: jobs}, jobs[]: cluster, job, restart, uid, user, account,
//          partition, decision, reason, profile, number, seen_unix_ns, ended_unix_ns. Keys are only ever added.
// Threads  thread-safe (pure).
#ifndef CLIENT_RENDER_HOOK_TEXT_H_
#define CLIENT_RENDER_HOOK_TEXT_H_

#include <cstdint>
#include <string>

#include "core/model/hook.h"

namespace perfd::client {

std::string RenderHook(const HookOverview& overview, int64_t now_unix_ns);
std::string HookToJsonLine(const HookOverview& overview);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_HOOK_TEXT_H_
