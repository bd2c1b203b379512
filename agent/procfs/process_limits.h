// agent/procfs/process_limits.h - what a process may still map, and compute, before a limit of its own refuses or ends it.
//
// Shape    ReadProcessLimits reads; CheckRoom and CheckCpuTime decide (pure). CheckMappingRoom does both.
// Units    bytes; seconds of CPU time.
// Errors   ReadProcessLimits: kNotFound (gone). Check...: kFailedPrecondition, names the limit, what is left, what is wanted.
// Rules    nobody knows what the process will ask for next: wanted is room for us, for the most that it ever had, and a reserve.
// Source   getrlimit(2) RLIMIT_AS, RLIMIT_DATA, RLIMIT_MEMLOCK, RLIMIT_CPU, RLIMIT_RTTIME; proc(5) limits, status; mm/mmap.c may_expand_vm, mlock_future_check, sysctl_max_map_count.
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
inline constexpr uint64_t kLeastCpuSeconds = 60;

struct LimitedMemory {
  uint64_t limit = kNoLimit;
  uint64_t used = 0;  // at its largest, as far as that is known
};

struct ProcessLimits {
  LimitedMemory address_space;
  LimitedMemory data;
  LimitedMemory locked;  // kNoLimit also where it may lock at will
  // Some of its memory is locked, and so may be what it maps next. Nothing in /proc tells of a process that has asked for that
  // (MCL_FUTURE) and has mapped nothing since.
  bool locks = false;
  uint64_t cpu_limit_s = kNoLimit;  // of all its threads together
  uint64_t cpu_used_s = 0;          // 0 also without a limit
  // A thread of a real-time class may not compute for longer than a limit without a pause.
  bool bounds_real_time = false;
};

// Pure: the soft limit of this name in the text of /proc/PID/limits; kNoLimit: unlimited, or no such line.
uint64_t SoftLimit(absl::string_view limits, absl::string_view name);

absl::StatusOr<ProcessLimits> ReadProcessLimits(const ProcFs& procfs, int32_t pid);

absl::Status CheckRoom(const ProcessLimits& limits, uint64_t bytes);

// What measuring takes is its CPU time, too. The program keeps a minute, or a twentieth of all that it may use.
absl::Status CheckCpuTime(const ProcessLimits& limits);

// The same of the number of its mappings. used: those that there are; more: what we want.
absl::Status CheckMappingRoom(const ProcFs& procfs, size_t used, size_t more);

}  // namespace perfd::agent

#endif  // AGENT_PROCFS_PROCESS_LIMITS_H_
