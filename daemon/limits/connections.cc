#include "daemon/limits/connections.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace perfd::daemon {
namespace {

constexpr int kAtOnce = 64;
// One of ours, and gRPC's; of a user's connection the relay has its two.
constexpr size_t kOfTcp = 2;
constexpr size_t kOfUnix = 4;

size_t QuartersOfDescriptors(size_t quarters) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return static_cast<size_t>(limit.rlim_cur) / 4 * quarters;
}

}  // namespace

Connections::Connections(Limits& limits)
    : limits_(limits),
      hangups_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = wake_.get()}};
  if (!hangups_.valid() || !wake_.valid() ||
      ::epoll_ctl(hangups_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) {
    LogError("connections cannot be watched: {}", std::strerror(errno));
    return;  // every Add fails, in words
  }
  thread_ = std::thread([this] { Run(); });
}

Connections::~Connections() {
  if (!thread_.joinable()) return;
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

absl::Status Connections::Add(int connection, uint32_t uid, bool kept) {
  if (!kept) {
    ASSIGN_OR_RETURN(Payment one, limits_.Spend(Limit::kNewConnectionsPerUser, uid, 1,
                                                absl::GetCurrentTimeNanos()));
    one.Use(1);
  }
  Share own;
  if (kept) {
    own = limits_.Hold(Limit::kConnectionsPerUser, uid);
  } else {
    ASSIGN_OR_RETURN(own, limits_.Acquire(Limit::kConnectionsPerUser, uid));
  }
  const size_t most = kept ? SIZE_MAX : QuartersOfDescriptors(3);
  return Watch(connection, {.uid = uid, .own = std::move(own), .descriptors = kOfUnix}, most);
}

absl::Status Connections::Add(int connection, const std::string& network) {
  ASSIGN_OR_RETURN(Share own, limits_.Acquire(Limit::kConnectionsPerAddress, network));
  ASSIGN_OR_RETURN(Share tcp, limits_.Acquire(Limit::kTcpConnections, network));
  return Watch(connection, {.own = std::move(own), .tcp = std::move(tcp), .descriptors = kOfTcp},
               QuartersOfDescriptors(2));
}

absl::Status Connections::Watch(int connection, Connection added, size_t most_descriptors) {
  added.fd = UniqueFd(::fcntl(connection, F_DUPFD_CLOEXEC, 0));
  if (!added.fd.valid()) return absl::UnavailableError(std::strerror(errno));
  const int key = added.fd.get();
  MutexLock lock(&mutex_);
  if (descriptors_ >= most_descriptors)
    return absl::UnavailableError("few descriptors are left: raise LimitNOFILE of perfd");
  // Under the lock: the hang-up may come at once, also of a connection that is over already. EPOLLHUP is told always, and of both
  // directions: who only sends no more still has the connection.
  epoll_event event{.events = 0, .data = {.fd = key}};
  if (::epoll_ctl(hangups_.get(), EPOLL_CTL_ADD, key, &event) != 0)
    return absl::UnavailableError(std::strerror(errno));
  if (added.uid.has_value()) ++of_user_[*added.uid];
  descriptors_ += added.descriptors;
  connections_[key] = std::move(added);
  return absl::OkStatus();
}

size_t Connections::Of(uint32_t uid) const {
  MutexLock lock(&mutex_);
  const auto found = of_user_.find(uid);
  return found == of_user_.end() ? 0 : found->second;
}

void Connections::Forget(const Connection& ended) {
  descriptors_ -= ended.descriptors;
  if (!ended.uid.has_value()) return;
  if (const auto user = of_user_.find(*ended.uid); --user->second == 0) of_user_.erase(user);
}

void Connections::Run() {
  pthread_setname_np(pthread_self(), "perfd-hangup");
  std::array<epoll_event, kAtOnce> events{};
  while (true) {
    const int count = ::epoll_wait(hangups_.get(), events.data(), kAtOnce, -1);
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      if (fd == wake_.get()) return;
      MutexLock lock(&mutex_);
      const auto ended = connections_.find(fd);
      if (ended == connections_.end()) continue;
      Forget(ended->second);
      // The other descriptor may keep it in the set (epoll(7), questions 2 and 6).
      ::epoll_ctl(hangups_.get(), EPOLL_CTL_DEL, fd, nullptr);
      connections_.erase(ended);
    }
  }
}

}  // namespace perfd::daemon
