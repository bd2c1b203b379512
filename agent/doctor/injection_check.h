// agent/doctor/injection_check.h - whether loops of ranks can be altered on this node at all.
//
// Shape    FindObstacle looks at files and rights only (called with every heartbeat); CheckInjection also starts the tracer.
// Rules    what one rank forbids (a seccomp filter, another tracer) is not asked here: the rank's own measurement says it.
// Threads  thread-safe.
// Source   ptrace(2) "Ptrace access mode checking", Documentation/admin-guide/LSM/Yama.rst; pidfd_open(2): Linux 5.3.
#ifndef AGENT_DOCTOR_INJECTION_CHECK_H_
#define AGENT_DOCTOR_INJECTION_CHECK_H_

#include <string>

#include "agent/doctor/check_scope.h"
#include "agent/doctor/node_checks.h"
#include "agent/procfs/procfs.h"

namespace perfd::agent {

struct InjectionObstacle {
  std::string reason;  // empty: there is none
  std::string fix;     // a line that a person can run
};

// The first of: the agent's own flag, the disable file, the tracer's file, the right to ptrace, kernel, clock.
InjectionObstacle FindObstacle(const ProcFs& procfs, const NodeCheckOptions& options);

// Rows "perf-agent-tracer" and "altering loops".
void CheckInjection(const CheckScope& scope);

}  // namespace perfd::agent

#endif  // AGENT_DOCTOR_INJECTION_CHECK_H_
