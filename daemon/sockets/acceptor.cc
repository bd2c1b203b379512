#include "daemon/sockets/acceptor.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/log.h"

namespace perfd::daemon {
namespace {

constexpr absl::Duration kWait = absl::Milliseconds(100);

// It has gone meanwhile, or its network has an error (accept(2), "Error handling"): the next one may be had at once.
bool IsPeers(int error) {
  constexpr std::array kErrors = {EAGAIN,       EINTR,       ECONNABORTED, ENETDOWN,
                                  EPROTO,       ENOPROTOOPT, EHOSTDOWN,    ENONET,
                                  EHOSTUNREACH, EOPNOTSUPP,  ENETUNREACH};
  return std::find(kErrors.begin(), kErrors.end(), error) != kErrors.end();
}

// Invalid: there is none any more, or it cannot be had now.
UniqueFd AcceptOne(int listener) {
  UniqueFd connection(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection.valid() || IsPeers(errno)) return connection;
  const bool descriptors = errno == EMFILE || errno == ENFILE;
  LogError("accept: {}{}", std::strerror(errno), descriptors ? "; raise LimitNOFILE of perfd" : "");
  absl::SleepFor(kWait);
  return connection;
}

}  // namespace

absl::Status Acceptor::Start(std::vector<int> listeners, OnConnection on_connection) {
  wake_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid())
    return absl::ResourceExhaustedError(absl::StrCat("eventfd: ", std::strerror(errno)));
  thread_ =
      std::thread([this, listeners = std::move(listeners),
                   on_connection = std::move(on_connection)] { Run(listeners, on_connection); });
  return absl::OkStatus();
}

void Acceptor::Stop() {
  if (!thread_.joinable()) return;
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

void Acceptor::Run(const std::vector<int>& listeners, const OnConnection& on_connection) {
  pthread_setname_np(pthread_self(), "perfd-accept");
  std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}};
  for (const int listener : listeners) fds.push_back({listener, POLLIN, 0});
  while (true) {
    if (::poll(fds.data(), fds.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return LogError("poll: {}; nobody is accepted any more", std::strerror(errno));
    }
    if (fds[0].revents != 0) return;
    for (size_t i = 1; i < fds.size(); ++i) {
      if (fds[i].revents == 0) continue;
      UniqueFd connection = AcceptOne(fds[i].fd);
      if (connection.valid()) on_connection(std::move(connection));
    }
  }
}

}  // namespace perfd::daemon
