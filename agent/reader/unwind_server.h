// agent/reader/unwind_server.h - the life of perf-agent-reader in mode unwind: open, confine, unwind until the agent is gone.
//
// Shape    ServeUnwind(socket, arguments): the agent's first message tells the mappings, the first answer whether any of
//          their files can be read.
// Errors   kUnavailable when the agent closed the socket (the normal end).
// Threads  thread-bound; the process must have no other thread.
// Bounds   kMaxUnwindFiles files; code in further ones ends a call path.
#ifndef AGENT_READER_UNWIND_SERVER_H_
#define AGENT_READER_UNWIND_SERVER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "agent/reader/arguments.h"

namespace perfd::agent {

inline constexpr size_t kMaxUnwindFiles =
    320;  // three descriptors each, below the usual limit of 1024

absl::Status ServeUnwind(int socket, const UnwindArguments& arguments);

}  // namespace perfd::agent

#endif  // AGENT_READER_UNWIND_SERVER_H_
