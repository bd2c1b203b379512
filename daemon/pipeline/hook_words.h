// daemon/pipeline/hook_words.h - how the hook desk names nodes and callers.
//
// Threads  thread-safe (pure).
#ifndef DAEMON_PIPELINE_HOOK_WORDS_H_
#define DAEMON_PIPELINE_HOOK_WORDS_H_

#include <string>

#include "core/model/hook.h"
#include "daemon/pipeline/job_admission.h"

namespace perfd::daemon {

// The node a call speaks for: that of the certificate, else what a trusted caller says; empty: none in particular.
const std::string& NodeOf(const HookCaller& caller, const HookJob& job);

// "node n1", "alice", "root".
std::string CallerText(const HookCaller& caller);

}  // namespace perfd::daemon

#endif  // DAEMON_PIPELINE_HOOK_WORDS_H_
