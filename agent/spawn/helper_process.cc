#include "agent/spawn/helper_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int kKilledEndMs = 5000;  // after SIGKILL; longer only in an uninterruptible wait

class SpawnSettings {
 public:
  SpawnSettings(int socket, bool own_session) {
    ::posix_spawn_file_actions_init(&files_);
    ::posix_spawn_file_actions_adddup2(&files_, socket, kHelperSocket);
    ::posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&files_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addclosefrom_np(&files_, kHelperSocket + 1);
    ::posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    const int session = own_session ? POSIX_SPAWN_SETSID : 0;
    ::posix_spawnattr_setflags(
        &attributes_, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | session));
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&files_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

// True once the process has ended.
bool AwaitEnd(const UniqueFd& process, int wait_ms) {
  pollfd ready{process.get(), POLLIN, 0};
  return ::poll(&ready, 1, wait_ms) > 0;
}

std::string Describe(int status) {
  if (WIFEXITED(status)) return absl::StrCat("exit status ", WEXITSTATUS(status));
  return absl::StrCat("signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
}

uint64_t Ns(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * kNsPerSecond +
         static_cast<uint64_t>(time.tv_usec) * 1000;
}

// What the helpers have used of CPUs.
class CpuAccount {
 public:
  void Started(pid_t pid) {
    MutexLock lock(&mutex_);
    running_[pid] = 0;
  }
  // Nothing: it is not reaped and counts as it was seen last.
  void Ended(pid_t pid, const rusage* used) {
    MutexLock lock(&mutex_);
    const auto it = running_.find(pid);
    if (it == running_.end()) return;
    ended_ns_ +=
        std::max(it->second, used == nullptr ? 0 : Ns(used->ru_utime) + Ns(used->ru_stime));
    running_.erase(it);
  }
  uint64_t Total() {
    MutexLock lock(&mutex_);
    uint64_t total = ended_ns_;
    for (auto& [pid, seen_ns] : running_) {
      seen_ns = std::max(seen_ns, HelperCpuNs(pid));
      total += seen_ns;
    }
    return total;
  }

 private:
  Mutex mutex_;
  // With what they had used when last looked at.
  std::map<pid_t, uint64_t> running_ ABSL_GUARDED_BY(mutex_);
  uint64_t ended_ns_ ABSL_GUARDED_BY(mutex_) = 0;
};

CpuAccount& Account() {
  static CpuAccount* const account = new CpuAccount;  // helpers may end while the process does
  return *account;
}

std::string Reap(pid_t pid) {
  int status = 0;
  rusage used{};
  const bool reaped = ::wait4(pid, &status, WNOHANG, &used) == pid;
  Account().Ended(pid, reaped ? &used : nullptr);
  return reaped ? Describe(status) : "does not end after SIGKILL";
}

}  // namespace

absl::StatusOr<pid_t> StartHelper(const HelperProgram& program, int socket) {
  std::vector<std::string> words = {program.path};
  words.insert(words.end(), program.arguments.begin(), program.arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  char* no_environment[] = {nullptr};
  const SpawnSettings settings(socket, program.own_session);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, program.path.c_str(), settings.files(),
                                  settings.attributes(), argv.data(), no_environment);
  if (error != 0)
    return absl::FailedPreconditionError(
        absl::StrCat("cannot start ", program.name, " '", program.path, "': ", strerror(error)));
  AdoptHelper(pid);
  return pid;
}

absl::StatusOr<Helper> StartWithSocket(const std::string& name, HelperStart start) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return absl::ResourceExhaustedError(absl::StrCat(name, " socket: ", strerror(errno)));
  Helper helper;
  helper.socket = UniqueFd(ends[0]);
  const UniqueFd theirs(ends[1]);
  ASSIGN_OR_RETURN(helper.pid, start(theirs.get()));
  return helper;
}

void AdoptHelper(pid_t pid) {
  Account().Started(pid);
}

std::string EndHelper(pid_t pid, int grace_ms) {
  // Not yet reaped, so the pid cannot have been given to another process.
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!AwaitEnd(process, grace_ms)) {
    ::kill(pid, SIGKILL);
    AwaitEnd(process, kKilledEndMs);
  }
  return Reap(pid);
}

void AwaitHelper(pid_t pid, int wait_ms) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (AwaitEnd(process, wait_ms)) Reap(pid);
}

bool KillHelper(pid_t pid, int wait_ms) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  ::kill(pid, SIGKILL);
  if (!AwaitEnd(process, wait_ms)) return false;
  Reap(pid);
  return true;
}

uint64_t HelpersCpuNs() {
  return Account().Total();
}

uint64_t HelperCpuNs(pid_t pid) {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return static_cast<uint64_t>(used.tv_sec) * kNsPerSecond + static_cast<uint64_t>(used.tv_nsec);
}

}  // namespace perfd::agent
