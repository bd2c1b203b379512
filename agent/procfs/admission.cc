#include "agent/procfs/admission.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/procfs/read_file.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {
namespace {

constexpr uint32_t kRoot = 0;

std::string Who(int32_t pid) {
  return absl::StrCat("process ", pid);
}

absl::Status EndedError(int32_t pid) {
  return absl::NotFoundError(absl::StrCat(Who(pid), " has ended"));
}

std::string PathOf(const ProcFs& procfs, int32_t pid, const char* file) {
  return absl::StrCat(procfs.root(), "/", pid, "/", file);
}

// Of all threads: credentials belong to each, and a debugger's right to one is a right to the memory of all.
absl::StatusOr<ProcessRights> ReadRights(const ProcFs& procfs, int32_t pid, ThreadScope scope) {
  ASSIGN_OR_RETURN(const ProcessStatus leader, procfs.Status(pid));
  if (leader.state == 'Z' || leader.state == 'X') return EndedError(pid);
  const ProcessRights rights = RightsOf(leader);
  if (scope == ThreadScope::kMainThread) return rights;
  ASSIGN_OR_RETURN(const std::vector<int32_t> tids, procfs.Threads(pid));
  for (const int32_t tid : tids) {
    if (tid == pid) continue;
    const auto status = procfs.ThreadStatus(pid, tid);
    if (absl::IsNotFound(status.status())) continue;  // it has ended
    RETURN_IF_ERROR(status.status());
    if (RightsOf(*status) != rights)
      return absl::PermissionDeniedError(
          absl::StrCat(Who(pid), ": its threads run with different rights"));
  }
  return rights;
}

// The owner of most entries of /proc/PID is the effective user of a process that may be dumped, and root of others.
bool IsDumpable(const ProcFs& procfs, int32_t pid, const ProcessRights& rights) {
  struct stat entry {};
  if (::stat(PathOf(procfs, pid, "fd").c_str(), &entry) != 0) return errno == ENOENT;  // it ends
  return entry.st_uid == rights.uids[1];
}

// What cannot be seen is 0: it stays so, or the process has changed.
FileId IdOf(const std::string& path) {
  struct stat entry {};
  if (::stat(path.c_str(), &entry) != 0) return {};
  return {entry.st_dev, entry.st_ino};
}

// None: it is the agent's own, or not directly below that one.
std::optional<uint32_t> OwnerOfNamespace(const ProcFs& procfs, int32_t pid) {
  const FileId own = IdOf("/proc/self/ns/user");
  const UniqueFd space(::open(PathOf(procfs, pid, "ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  if (!space.valid()) return std::nullopt;
  const UniqueFd parent(::ioctl(space.get(), NS_GET_PARENT));
  struct stat entry {};
  uid_t owner = 0;
  if (!parent.valid() || ::fstat(parent.get(), &entry) != 0 || entry.st_ino != own.inode ||
      ::ioctl(space.get(), NS_GET_OWNER_UID, &owner) != 0)
    return std::nullopt;
  return owner;
}

absl::Status ChangedError(int32_t pid, absl::string_view what) {
  return absl::PermissionDeniedError(
      absl::StrCat(Who(pid), " ", what, " since it was admitted: it is not touched any more"));
}

}  // namespace

absl::StatusOr<Admission> ReadAdmission(const ProcFs& procfs, int32_t pid, ThreadScope scope) {
  Admission admission;
  ASSIGN_OR_RETURN(const ProcessStamp stamp, procfs.Stamp(pid));
  if (stamp.state == 'Z' || stamp.state == 'X') return EndedError(pid);
  admission.start_ticks = stamp.start_ticks;
  admission.stack_start = stamp.stack_start;
  ASSIGN_OR_RETURN(admission.rights, ReadRights(procfs, pid, scope));
  admission.dumpable = IsDumpable(procfs, pid, admission.rights);
  if (scope == ThreadScope::kAllThreads) {
    ASSIGN_OR_RETURN(const FileId executable, procfs.ExecutableId(pid));
    admission.executable_device = executable.device;
    admission.executable_inode = executable.inode;
  }
  admission.user_namespace = IdOf(PathOf(procfs, pid, "ns/user")).inode;
  if (admission.rights.capabilities != 0) admission.namespace_owner = OwnerOfNamespace(procfs, pid);
  // All of it was of one process.
  ASSIGN_OR_RETURN(const ProcessStamp after, procfs.Stamp(pid));
  if (after.start_ticks != stamp.start_ticks || after.state == 'Z') return EndedError(pid);
  return admission;
}

absl::Status CheckRequester(const Admission& admission, const Requester& requester,
                            const std::string& who) {
  if (requester.privileged) return absl::OkStatus();
  const ProcessRights& rights = admission.rights;
  if (rights.uids[0] != requester.uid)
    return absl::PermissionDeniedError(
        absl::StrCat(who, " belongs to ", UserText(rights.uids[0]), "; ",
                     requester.name.empty() ? "you" : requester.name,
                     " may profile only processes of uid ", requester.uid));
  const bool own_namespace =
      admission.namespace_owner.has_value() && *admission.namespace_owner == requester.uid;
  RETURN_IF_ERROR(CheckPlain(own_namespace ? WithoutCapabilities(rights) : rights, who));
  if (admission.dumpable || rights.uids[1] == kRoot) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      who,
      " forbids its own user to look into it (prctl PR_SET_DUMPABLE, or a program file that the "
      "user may run but not read); only an administrator may profile it"));
}

absl::Status CheckSameRights(const Admission& admitted, const Admission& now, int32_t pid) {
  if (now.start_ticks != admitted.start_ticks)
    return absl::NotFoundError(absl::StrCat(Who(pid), " is another process now"));
  if (now.rights.uids != admitted.rights.uids)
    return ChangedError(pid, absl::StrCat("ran for ", UserText(admitted.rights.uids[1]),
                                          " and has got the rights of ",
                                          UserText(now.rights.uids[1]), " (setuid)"));
  if (now.rights.gids != admitted.rights.gids)
    return ChangedError(pid, "has changed its group (setgid)");
  if (now.rights.capabilities != admitted.rights.capabilities)
    return ChangedError(pid, "has changed its capabilities");
  if (now.user_namespace != admitted.user_namespace)
    return ChangedError(pid, "has changed its user name space");
  if (now.dumpable != admitted.dumpable)
    return ChangedError(pid, "has changed who may look into it (PR_SET_DUMPABLE)");
  return absl::OkStatus();
}

absl::Status CheckUnchanged(const Admission& admitted, const Admission& now, int32_t pid) {
  RETURN_IF_ERROR(CheckSameRights(admitted, now, pid));
  const bool same_file = now.executable_device == admitted.executable_device &&
                         now.executable_inode == admitted.executable_inode;
  if (!same_file || now.stack_start != admitted.stack_start)
    return absl::NotFoundError(absl::StrCat(Who(pid), " is another program now (exec)"));
  return absl::OkStatus();
}

absl::Status CheckUnchanged(const Admission& admitted, const ProcFs& procfs, int32_t pid) {
  ASSIGN_OR_RETURN(const Admission now, ReadAdmission(procfs, pid));
  return CheckUnchanged(admitted, now, pid);
}

}  // namespace perfd::agent
