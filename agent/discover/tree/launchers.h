// agent/discover/tree/launchers.h - does a process only wait for those that it has started? Pure, but for ThreadsCpuNs.
//
// Shape    OnlyWaits(parent, below, probe) -> judgement, by what each used of its CPUs in a probe and in its life.
// Units    CPU and wall time in ns.
// Rules    not a launcher: who used its CPUs in the probe, or much in its life; who has nothing below it that works or is a rank;
//          a rank that is no shell or wrapper; who waits for anything else than children or input. In doubt a process is
//          measured: a launcher then has no samples, but work would be lost.
// Threads  thread-safe.
// Source   proc(5) /proc/PID/wchan: names of the kernel's functions, which differ between versions; "0" is unknown.
#ifndef AGENT_DISCOVER_TREE_LAUNCHERS_H_
#define AGENT_DISCOVER_TREE_LAUNCHERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "agent/procfs/procfs.h"

namespace perfd::agent {

// What a process used of its CPUs.
struct ProbedUse {
  uint64_t used_ns = 0;      // in the look
  uint64_t lifetime_ns = 0;  // since its start
};

struct WatchedParent {
  bool named_so = false;  // a launcher or wrapper by its name
  bool is_rank = false;   // by its environment
  ProbedUse use;
  std::string wait_channel;  // empty: unknown
};

struct WatchedChild {
  bool is_rank = false;
  ProbedUse use;
};

// It used as good as nothing.
bool IsIdle(const ProbedUse& use, int64_t probe_ns, bool named_so);
bool Works(const ProbedUse& use, int64_t probe_ns);
bool OnlyWaits(const WatchedParent& parent, const std::vector<WatchedChild>& below,
               int64_t probe_ns);

// What its threads that live have used: finer than the clock ticks of the process.
uint64_t ThreadsCpuNs(const ProcFs& procfs, int32_t pid);

}  // namespace perfd::agent

#endif  // AGENT_DISCOVER_TREE_LAUNCHERS_H_
