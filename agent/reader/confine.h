// agent/reader/confine.h - takes from this process everything that reading an already open file does not need.
//
// Shape    ConfineForOpening(limits) before the first foreign byte is interpreted: files can still be opened for reading,
//          with what rights there are left; then Confine(limits), once. There is no way back.
// Errors   kInternal; the caller must not go on.
// Threads  the process must have one thread.
// Safety   afterwards open, socket, fork and the like fail with EPERM; exec and ptrace kill the process; nothing new can
//          become executable; no core dump; the process dies with the thread that started it.
// Source   seccomp_rule_add(3), prctl(2), setrlimit(2).
#ifndef AGENT_READER_CONFINE_H_
#define AGENT_READER_CONFINE_H_

#include <cstdint>

#include "absl/status/status.h"

namespace perfd::agent {

struct ConfineLimits {
  uint64_t memory_bytes = uint64_t{4} << 30;  // address space
  uint64_t cpu_seconds = 300;
};

absl::Status ConfineForOpening(const ConfineLimits& limits);
absl::Status Confine(const ConfineLimits& limits);

}  // namespace perfd::agent

#endif  // AGENT_READER_CONFINE_H_
