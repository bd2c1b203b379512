// agent/reader/reader_server.h - the life of perf-agent-reader: open, confine, answer until the agent is gone.
//
// Shape    Serve(socket, arguments): the first message tells the module's facts or why it cannot be read.
// Errors   kUnavailable when the agent closed the socket (the normal end).
// Threads  thread-bound; the process must have no other thread.
#ifndef AGENT_READER_READER_SERVER_H_
#define AGENT_READER_READER_SERVER_H_

#include "absl/status/status.h"
#include "agent/reader/arguments.h"

namespace perfd::agent {

absl::Status Serve(int socket, const ReaderArguments& arguments);

}  // namespace perfd::agent

#endif  // AGENT_READER_READER_SERVER_H_
