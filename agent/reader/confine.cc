#include "agent/reader/confine.h"

#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

absl::Status Failed(absl::string_view what, int error) {
  return absl::InternalError(
      absl::StrCat("reader: cannot confine itself: ", what, ": ", strerror(error)));
}

absl::Status Bound(__rlimit_resource_t resource, uint64_t value) {
  rlimit now{};
  if (::getrlimit(resource, &now) != 0) return Failed("getrlimit", errno);
  const rlim_t bound = std::min<rlim_t>(value, now.rlim_max);
  const rlimit wanted{bound, bound};
  return ::setrlimit(resource, &wanted) == 0 ? absl::OkStatus() : Failed("setrlimit", errno);
}

absl::Status SetLimits(const ConfineLimits& limits) {
  RETURN_IF_ERROR(Bound(RLIMIT_AS, limits.memory_bytes));
  RETURN_IF_ERROR(Bound(RLIMIT_CPU, limits.cpu_seconds));
  RETURN_IF_ERROR(Bound(RLIMIT_CORE, 0));
  return Bound(RLIMIT_FSIZE, 0);
}

absl::Status SetFlags() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Failed("no_new_privs", errno);
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return Failed("dumpable", errno);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return Failed("pdeathsig", errno);
  return absl::OkStatus();
}

struct ReleaseFilter {
  void operator()(void* filter) const { seccomp_release(filter); }
};
using Filter = std::unique_ptr<void, ReleaseFilter>;

int AllowPlain(scmp_filter_ctx filter) {
  for (const int call :
       {SCMP_SYS(read),         SCMP_SYS(write),          SCMP_SYS(readv),
        SCMP_SYS(writev),       SCMP_SYS(pread64),        SCMP_SYS(recvfrom),
        SCMP_SYS(sendto),       SCMP_SYS(poll),           SCMP_SYS(ppoll),
        SCMP_SYS(munmap),       SCMP_SYS(mremap),         SCMP_SYS(madvise),
        SCMP_SYS(brk),          SCMP_SYS(fstat),          SCMP_SYS(lseek),
        SCMP_SYS(close),        SCMP_SYS(exit),           SCMP_SYS(exit_group),
        SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
        SCMP_SYS(futex),        SCMP_SYS(clock_gettime),  SCMP_SYS(gettimeofday),
        SCMP_SYS(getrandom),    SCMP_SYS(getpid),         SCMP_SYS(gettid),
        SCMP_SYS(sysinfo),      SCMP_SYS(sched_yield),    SCMP_SYS(restart_syscall)}) {
    if (const int error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0)) return error;
  }
  return 0;
}

// Memory that is not executable; questions about open descriptors; abort().
int AllowChecked(scmp_filter_ctx filter) {
  const auto no_exec = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
  const auto own = SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(::getpid()), 0);
  const auto by_descriptor = SCMP_A3(SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, AT_EMPTY_PATH);
  int error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, no_exec);
  if (error == 0) error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, no_exec);
  if (error == 0) error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, own);
  if (error == 0)
    error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1, by_descriptor);
  for (const scmp_datum_t question : {scmp_datum_t{F_GETFD}, scmp_datum_t{F_GETFL}}) {
    if (error == 0)
      error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
                               SCMP_A1(SCMP_CMP_EQ, question, 0));
  }
  return error;
}

// Nothing here ever tries these: who does is not this program any more.
int KillHostile(scmp_filter_ctx filter) {
  for (const int call : {SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(ptrace),
                         SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev)}) {
    if (const int error = seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, call, 0)) return error;
  }
  return 0;
}

// For reading only, with duplicates; and what it takes to load the final filter.
int AllowOpening(scmp_filter_ctx filter) {
  const auto read_only = SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY);
  const auto own = SCMP_A0(SCMP_CMP_EQ, 0, 0);
  int error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, read_only);
  if (error == 0) error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, own);
  if (error == 0)
    error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
                             SCMP_A1(SCMP_CMP_EQ, F_DUPFD_CLOEXEC, 0));
  // The flags of openat2 are in memory, out of a filter's sight; RLIMIT_FSIZE and the user's rights bound the rest.
  for (const int call : {SCMP_SYS(openat2), SCMP_SYS(prctl), SCMP_SYS(seccomp)}) {
    if (error == 0) error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
  }
  return error;
}

absl::Status LoadFilter(bool opening) {
  const Filter filter(seccomp_init(SCMP_ACT_ERRNO(EPERM)));
  if (filter == nullptr) return Failed("seccomp_init", ENOMEM);
  int error = AllowPlain(filter.get());
  if (error == 0) error = AllowChecked(filter.get());
  if (error == 0 && opening) error = AllowOpening(filter.get());
  if (error == 0) error = KillHostile(filter.get());
  if (error == 0) error = seccomp_load(filter.get());
  return error == 0 ? absl::OkStatus() : Failed("seccomp", -error);
}

}  // namespace

absl::Status ConfineForOpening(const ConfineLimits& limits) {
  RETURN_IF_ERROR(SetLimits(limits));
  RETURN_IF_ERROR(SetFlags());
  return LoadFilter(true);
}

absl::Status Confine(const ConfineLimits& limits) {
  RETURN_IF_ERROR(SetLimits(limits));
  // 0 is taken, so none is left; with 0 poll() itself would fail.
  RETURN_IF_ERROR(Bound(RLIMIT_NOFILE, 1));
  RETURN_IF_ERROR(SetFlags());
  return LoadFilter(false);
}

}  // namespace perfd::agent
