#include "agent/attach/tracer_spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/unique_fd.h"

namespace perfd {
namespace {

constexpr int kKilledEndMs = 5000;  // longer only in an uninterruptible wait

class SpawnFiles {
 public:
  explicit SpawnFiles(int socket) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_adddup2(&actions_, socket, kTracerSocket);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, kTracerSocket + 1);
  }
  ~SpawnFiles() { ::posix_spawn_file_actions_destroy(&actions_); }
  SpawnFiles(const SpawnFiles&) = delete;
  SpawnFiles& operator=(const SpawnFiles&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class SpawnAttributes {
 public:
  SpawnAttributes() {
    ::posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  }
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

}  // namespace

absl::StatusOr<pid_t> StartTracer(const std::string& program,
                                  const std::vector<std::string>& arguments, int socket) {
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  char* no_environment[] = {nullptr};
  const SpawnFiles files(socket);
  const SpawnAttributes attributes;
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, program.c_str(), files.get(), attributes.get(), argv.data(),
                                  no_environment);
  if (error != 0)
    return absl::FailedPreconditionError(
        absl::StrCat("cannot start tracer '", program, "': ", strerror(error)));
  return pid;
}

std::string EndTracer(pid_t pid) {
  // Not yet reaped, so the pid cannot have been given to another process.
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  ::kill(pid, SIGKILL);
  pollfd ready{process.get(), POLLIN, 0};
  ::poll(&ready, 1, kKilledEndMs);
  siginfo_t end{};
  ::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOHANG);
  if (end.si_pid == 0) return "does not end after SIGKILL";
  if (end.si_code == CLD_EXITED) return absl::StrCat("exit status ", end.si_status);
  return absl::StrCat("signal ", end.si_status, " (", strsignal(end.si_status), ")");
}

}  // namespace perfd
