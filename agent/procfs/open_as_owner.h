// agent/procfs/open_as_owner.h - opens a file of another process that only its owner may open:
//                                /proc/PID/mem to write.
//
// Shape    as us first; when that is forbidden, with the owner's user id for file access alone,
//          which CAP_SETUID allows. So an agent needs no right to write everybody's files
//          (CAP_DAC_OVERRIDE).
// Errors   errno as of open(2); the descriptor is then invalid.
// Threads  thread-safe. The id for file access and the parent death signal belong to the calling
//          thread, the dumpable flag to the whole process: one thread at a time is the owner. The
//          lock is the last that anyone takes: nothing is called under it but the kernel. Signals
//          and ptrace ask for other ids.
// Source   setfsuid(2); credentials(7); kernel/cred.c commit_creds: the change clears the parent
//          death signal and the dumpable flag (of the mm), which are put back.
#ifndef AGENT_PROCFS_OPEN_AS_OWNER_H_
#define AGENT_PROCFS_OPEN_AS_OWNER_H_

#include <string>

#include "core/base/unique_fd.h"

namespace perfd::agent {

UniqueFd OpenAsOwner(const std::string& path, int flags);

}  // namespace perfd::agent

#endif  // AGENT_PROCFS_OPEN_AS_OWNER_H_
