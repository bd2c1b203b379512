// agent/procfs/process_limits.h - what a process may still map before a limit of its own refuses it.
//
// Shape    ReadProcessLimits reads; CheckRoom decides (pure). CheckMappingRoom does both.
// Units    bytes.
// Errors   ReadProcessLimits: kNotFound (gone). Check...: kFailedPrecondition, names the limit, what is left, what is wanted.
// Rules    nobody knows what the process will ask for next: wanted is room for us and a reserve for it.
// Source   getrlimit(2) RLIMIT_AS, RLIMIT_DATA, RLIMIT_MEMLOCK; proc(5) limits, status; mm/mmap.c may_expand_vm, mlock_future_check, sysctl_max_map_count.
#ifndef AGENT_PROCFS_PROCESS_LIMITS_H_
#define AGENT_PROCFS_PROCESS_LIMITS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/procfs/procfs.h"

namespace perfd::agent {

inline constexpr uint64_t kNoLimit = UINT64_MAX;
inline constexpr uint64_t kLeastReserve = 64u << 20;

struct LimitedMemory {
  uint64_t limit = kNoLimit;
  uint64_t used = 0;
};

struct ProcessLimits {
  LimitedMemory address_space;
  LimitedMemory data;
  LimitedMemory locked;  // kNoLimit also where it may lock at will
  // Some of its memory is locked, and so may be what it maps next. Nothing in /proc tells of a process that has asked for that
  // (MCL_FUTURE) and has mapped nothing since.
  bool locks = false;
};

// Pure: the soft limit of this name in the text of /proc/PID/limits; kNoLimit: unlimited, or no such line.
uint64_t SoftLimit(absl::string_view limits, absl::string_view name);

absl::StatusOr<ProcessLimits> ReadProcessLimits(const ProcFs& procfs, int32_t pid);

absl::Status CheckRoom(const ProcessLimits& limits, uint64_t bytes);

// The same of the number of its mappings. used: those that there are; more: what we want.
absl::Status CheckMappingRoom(const ProcFs& procfs, size_t used, size_t more);

}  // namespace perfd::agent

#endif  // AGENT_PROCFS_PROCESS_LIMITS_H_
