// agent/app/guarded_proc.h - /proc, read by helpers where a process may not answer (agent/procfs/guarded).
#ifndef AGENT_APP_GUARDED_PROC_H_
#define AGENT_APP_GUARDED_PROC_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "agent/procfs/procfs.h"
#include "core/base/clock.h"

namespace perfd::agent {

// `clock` outlives it and its copies.
ProcFs GuardedProc(const std::string& reader_binary, const Clock& clock);

// InjectorOptions::answers.
std::function<absl::Status(int32_t pid)> Answers(const ProcFs& procfs);

}  // namespace perfd::agent

#endif  // AGENT_APP_GUARDED_PROC_H_
