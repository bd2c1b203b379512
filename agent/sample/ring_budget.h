// agent/sample/ring_budget.h - how large rings may be so that every thread gets one.
//
// Shape    FairRingBytes(what is wanted, threads, LockableBytes()) -> a power of two of pages, at least one.
// Units    bytes. A ring locks its data and one page more.
// Source   kernel/events/core.c perf_mmap: perf_event_mlock_kb for each online CPU, RLIMIT_MEMLOCK beyond that, no limit
//          with CAP_IPC_LOCK or perf_event_paranoid -1.
#ifndef AGENT_SAMPLE_RING_BUDGET_H_
#define AGENT_SAMPLE_RING_BUDGET_H_

#include <cstdint>

#include "agent/procfs/procfs.h"

namespace perfd::agent {

inline constexpr uint64_t kUnlimitedBytes = UINT64_MAX;

// What this process may lock for rings, were it the only one of its user.
uint64_t LockableBytes(const ProcFs& procfs);

// A quarter is left for threads that start later. Pure.
uint64_t FairRingBytes(uint64_t wanted_bytes, int threads, uint64_t lockable_bytes,
                       uint64_t page_bytes);

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_RING_BUDGET_H_
