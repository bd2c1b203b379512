// agent/procfs/open_as_owner.h - opens a file of another process that only its owner may open: /proc/PID/mem to write.
//
// Shape    as us first; when that is forbidden, with the owner's user id for file access alone, which CAP_SETUID allows.
//          So an agent needs no right to write everybody's files (CAP_DAC_OVERRIDE).
// Errors   errno as of open(2); the descriptor is then invalid.
// Threads  thread-safe: the id for file access belongs to the calling thread. Signals and ptrace ask for other ids.
// Source   setfsuid(2); credentials(7); kernel/cred.c commit_creds: the change clears the parent death signal and the
//          dumpable flag, which are put back.
#ifndef AGENT_PROCFS_OPEN_AS_OWNER_H_
#define AGENT_PROCFS_OPEN_AS_OWNER_H_

#include <string>

#include "core/base/unique_fd.h"

namespace perfd {

UniqueFd OpenAsOwner(const std::string& path, int flags);

}  // namespace perfd

#endif  // AGENT_PROCFS_OPEN_AS_OWNER_H_
