// agent/procfs/admission.h - who a process was when it was admitted: all that its requester's right to it depends on.
//
// Shape    ReadAdmission at discovery; CheckRequester says whether the requester may have it; whoever acts on the process later
//          carries the value along and calls CheckUnchanged, while the process stands still if it is to be altered.
// Units    as proc(5); device and inode of the executable; inode of the user name space.
// Errors   ReadAdmission: kNotFound (gone, or a zombie), kPermissionDenied (its threads have different rights), kUnavailable (the
//          file system of its program does not answer). CheckRequester: kPermissionDenied. CheckUnchanged: kNotFound (ended, or
//          another process), kPermissionDenied (says what has changed).
// Rules    as ptrace_may_access: all ids the requester's, no capability that the requester lacks, and a process that may be
//          dumped. Capabilities in a user name space that the requester has made are the requester's.
// Threads  thread-safe.
// Source   kernel/ptrace.c __ptrace_may_access; fs/proc/base.c task_dump_owner; ioctl_ns(2).
#ifndef AGENT_PROCFS_ADMISSION_H_
#define AGENT_PROCFS_ADMISSION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/procfs/process_rights.h"
#include "agent/procfs/procfs.h"
#include "core/model/identity.h"

namespace perfd::agent {

struct Admission {
  uint64_t start_ticks = 0;
  uint64_t stack_start = 0;  // another one after an exec; 0 without the right to see it
  uint64_t executable_device = 0;
  uint64_t executable_inode = 0;
  uint64_t user_namespace = 0;
  std::optional<uint32_t> namespace_owner;  // of a name space below the agent's own
  ProcessRights rights;                     // of every thread
  bool dumpable = true;                     // its user may look into it; unknown of root's: true

  bool operator==(const Admission&) const = default;
};

// Those who look often take one without the executable: the file system of a rank's program may hang. A rank may have hundreds of
// threads.
enum class ThreadScope : uint8_t {
  kAllThreads,
  kAllThreadsOnly,  // without the executable
  kMainThread,      // ... too
};
absl::StatusOr<Admission> ReadAdmission(const ProcFs& procfs, int32_t pid,
                                        ThreadScope scope = ThreadScope::kAllThreads);

// `who` begins the message, e.g. "process 7 (passwd)".
absl::Status CheckRequester(const Admission& admission, const Requester& requester,
                            const std::string& who);

// `admitted` and `now` are of the same pid.
absl::Status CheckUnchanged(const Admission& admitted, const Admission& now, int32_t pid);
absl::Status CheckUnchanged(const Admission& admitted, const ProcFs& procfs, int32_t pid);
// The same of a process that may have executed another program of its owner.
absl::Status CheckSameRights(const Admission& admitted, const Admission& now, int32_t pid);

}  // namespace perfd::agent

#endif  // AGENT_PROCFS_ADMISSION_H_
