// agent/reader/spawn.h - starts and ends the reader process.
//
// Shape    StartReader -> pid, with the socket on descriptor kReaderSocket, nothing else inherited but standard error.
//          EndReader kills the process if it still runs, reaps it and tells how it ended.
// Errors   kFailedPrecondition (the program cannot be executed).
// Threads  thread-safe: posix_spawn is safe with threads. The reader dies with the thread that started it.
// Source   posix_spawn(3), pidfd_open(2), waitid(2).
#ifndef AGENT_READER_SPAWN_H_
#define AGENT_READER_SPAWN_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace perfd {

inline constexpr int kReaderSocket = 3;

absl::StatusOr<pid_t> StartReader(const std::string& program,
                                  const std::vector<std::string>& arguments, int socket);

// E.g. "exit status 1" or "signal 9 (Killed)". Waits a bounded time.
std::string EndReader(pid_t pid);

}  // namespace perfd

#endif  // AGENT_READER_SPAWN_H_
