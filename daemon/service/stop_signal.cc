#include "daemon/service/stop_signal.h"

#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace perfd::daemon {

absl::StatusOr<StopSignal> StopSignal::Catch() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid() || ::pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) {
    return absl::InternalError(absl::StrCat("signalfd: ", std::strerror(errno)));
  }
  return StopSignal(std::move(fd));
}

int StopSignal::Wait(absl::Duration most) const {
  const absl::Duration longest = absl::Milliseconds(INT_MAX);
  const bool bounded = most <= longest;
  pollfd ready{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  // An interrupted wait ends early: the caller looks and waits again.
  (void)::poll(&ready, 1, bounded ? static_cast<int>(absl::ToInt64Milliseconds(most)) : -1);
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof(info)) != sizeof(info)) return 0;
  return static_cast<int>(info.ssi_signo);
}

void RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace perfd::daemon
