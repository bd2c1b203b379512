// agent/doctor/node_checks.h - everything on a node that decides whether perfd can measure there, and how to fix it.
//
// Shape    RunNodeChecks -> one row per permission, sysctl, kernel feature and package.
// Rules    a row that is not ok carries the line a person can run; optional rows cost features, not the profile.
// Threads  any. Takes under a second: the reader is given two seconds at most.
// Source   perf-security.rst, kernel.rst (Documentation/admin-guide), capabilities(7), ptrace(2) "Yama".
#ifndef AGENT_DOCTOR_NODE_CHECKS_H_
#define AGENT_DOCTOR_NODE_CHECKS_H_

#include <linux/perf_event.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/procfs/procfs.h"

namespace perfd::agent {

struct NodeCheck {
  std::string name;
  bool ok = false;
  bool optional = false;
  std::string found{};
  std::string fix{};  // empty when ok

  bool operator==(const NodeCheck&) const = default;
};

struct NodeCheckOptions {
  std::string agent_binary;   // for setcap; empty: the running program
  std::string reader_binary;  // perf-agent-reader; empty: not checked
  std::string tracer_binary;  // perf-agent-tracer; empty: not checked
  std::string disable_file;   // while it exists no loop is altered; empty: there is none
  bool inject = true;         // the agent may alter loops
  bool steady_clock = true;   // the time stamp counter is invariant
  bool user_mode = false;     // one user's own processes only: capabilities become optional
  int32_t pid = 0;            // whose rights; 0: this process
  std::string sys_root = "/sys";
  std::string debug_root = "/usr/lib/debug";
  std::function<int(const perf_event_attr&)> probe;  // empty: really opens the event
};

std::vector<NodeCheck> RunNodeChecks(const ProcFs& procfs, const NodeCheckOptions& options);

}  // namespace perfd::agent

#endif  // AGENT_DOCTOR_NODE_CHECKS_H_
