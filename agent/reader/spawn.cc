#include "agent/reader/spawn.h"

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

constexpr int kOwnEndMs = 100;      // a reader that closed its socket is about to end by itself
constexpr int kKilledEndMs = 5000;  // after SIGKILL; longer only in an uninterruptible wait

class SpawnSettings {
 public:
  explicit SpawnSettings(int socket) {
    ::posix_spawn_file_actions_init(&files_);
    ::posix_spawn_file_actions_adddup2(&files_, socket, kReaderSocket);
    ::posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&files_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addclosefrom_np(&files_, kReaderSocket + 1);
    ::posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
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

absl::StatusOr<pid_t> StartReader(const std::string& program,
                                  const std::vector<std::string>& arguments, int socket) {
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  char* no_environment[] = {nullptr};
  const SpawnSettings settings(socket);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, program.c_str(), settings.files(), settings.attributes(),
                                  argv.data(), no_environment);
  if (error != 0)
    return absl::FailedPreconditionError(
        absl::StrCat("cannot start reader '", program, "': ", strerror(error)));
  return pid;
}

std::string EndReader(pid_t pid) {
  // Not yet reaped, so the pid cannot have been given to another process.
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!AwaitEnd(process, kOwnEndMs)) {
    ::kill(pid, SIGKILL);
    AwaitEnd(process, kKilledEndMs);
  }
  siginfo_t end{};
  ::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOHANG);
  return Describe(end);
}

}  // namespace perfd
