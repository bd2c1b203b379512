#include "agent/spawn/helper_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/unique_fd.h"

namespace perfd {
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

std::string Describe(const siginfo_t& end) {
  if (end.si_pid == 0) return "does not end after SIGKILL";
  if (end.si_code == CLD_EXITED) return absl::StrCat("exit status ", end.si_status);
  return absl::StrCat("signal ", end.si_status, " (", strsignal(end.si_status), ")");
}

}  // namespace

absl::StatusOr<pid_t> StartHelper(const HelperProgram& program, int socket) {
  std::vector<std::string> words = {program.path};
  words.insert(words.end(), program.arguments.begin(), program.arguments.end());
  std::vector<char*> argv;
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
  return pid;
}

std::string EndHelper(pid_t pid, int grace_ms) {
  // Not yet reaped, so the pid cannot have been given to another process.
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!AwaitEnd(process, grace_ms)) {
    ::kill(pid, SIGKILL);
    AwaitEnd(process, kKilledEndMs);
  }
  siginfo_t end{};
  ::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOHANG);
  return Describe(end);
}

}  // namespace perfd
