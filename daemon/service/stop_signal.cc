#include "daemon/service/stop_signal.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace perfd {

absl::StatusOr<StopSignal> StopSignal::Catch() {
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC));
  if (!fd.valid() || ::pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) {
    return absl::InternalError(absl::StrCat("signalfd: ", std::strerror(errno)));
  }
  return StopSignal(std::move(fd));
}

int StopSignal::Wait() const {
  signalfd_siginfo info{};
  while (::read(fd_.get(), &info, sizeof(info)) < 0 && errno == EINTR) {
  }
  return static_cast<int>(info.ssi_signo);
}

void RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace perfd
