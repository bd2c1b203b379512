// agent/doctor/check_scope.h - what all checks share, and the groups of checks.
#ifndef AGENT_DOCTOR_CHECK_SCOPE_H_
#define AGENT_DOCTOR_CHECK_SCOPE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "agent/doctor/node_checks.h"
#include "agent/procfs/procfs.h"

namespace perfd::agent {

struct CheckScope {
  const ProcFs& procfs;
  const NodeCheckOptions& options;
  uint64_t capabilities;  // effective ones of the agent
  std::string agent_binary;
  std::vector<NodeCheck>* checks;

  bool Has(int capability) const { return (capabilities >> capability & 1) != 0; }
  bool MayProfile() const;  // CAP_PERFMON or CAP_SYS_ADMIN
  std::string SetcapLine() const;
  void Add(NodeCheck check) const {
    if (check.ok) check.fix.clear();
    checks->push_back(std::move(check));
  }
};

void CheckPerf(const CheckScope& scope);
void CheckRights(const CheckScope& scope);
void CheckKernel(const CheckScope& scope);
void CheckPrograms(const CheckScope& scope);

// Whether the file is there and `--version` of it ends well, in time.
NodeCheck CheckProgram(const std::string& name, const std::string& binary);

}  // namespace perfd::agent

#endif  // AGENT_DOCTOR_CHECK_SCOPE_H_
