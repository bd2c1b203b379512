#include "daemon/relay/relay.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/time/clock.h"
#include "core/base/clock.h"

namespace perfd::daemon {
namespace {

constexpr int kAtOnce = 64;

int64_t Now() {
  return SystemClock().MonotonicNs();
}

}  // namespace

Relay::Relay(Limits& limits, RelayRules rules)
    : events_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      shared_{.limits = limits, .rules = std::move(rules)} {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
  if (!events_.valid() || !wake_.valid() ||
      ::epoll_ctl(events_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) {
    LogError("connections of users cannot be carried: {}", std::strerror(errno));
    MutexLock lock(&mutex_);
    close_by_ns_ = 0;  // every Carry fails, in words
    return;
  }
  thread_ = std::thread([this] { Run(); });
}

absl::StatusOr<UniqueFd> Relay::Carry(UniqueFd client, uint32_t uid) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) != 0) {
    ::shutdown(client.get(), SHUT_RDWR);
    return absl::UnavailableError(std::strerror(errno));
  }
  UniqueFd server(pair[0]);
  UniqueFd own(pair[1]);
  auto arrival =
      std::make_unique<RelayedConnection>(std::move(client), std::move(own), uid, shared_);
  {
    MutexLock lock(&mutex_);
    if (close_by_ns_.has_value()) return absl::UnavailableError("perfd is stopping");
    arrivals_.push_back(std::move(arrival));
  }
  ::eventfd_write(wake_.get(), 1);
  return server;
}

void Relay::Close(absl::Duration within) {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(&mutex_);
    close_by_ns_ = Now() + absl::ToInt64Nanoseconds(within);
  }
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
  connections_.clear();
  MutexLock lock(&mutex_);
  arrivals_.clear();
}

void Relay::Run() {
  pthread_setname_np(pthread_self(), "perfd-relay");
  while (IsOpen()) {
    Wait();
    TakeArrivals();
    MoveAll();
  }
}

bool Relay::IsOpen() {
  MutexLock lock(&mutex_);
  if (!close_by_ns_.has_value()) return true;
  return Now() < *close_by_ns_ && !(connections_.empty() && arrivals_.empty());
}

void Relay::Wait() {
  std::array<epoll_event, kAtOnce> events{};
  int timeout_ms = -1;
  {
    MutexLock lock(&mutex_);
    if (close_by_ns_.has_value() || due_.has_timed()) timeout_ms = DueConnections::kTickMs;
  }
  if (due_.has_ready()) timeout_ms = 0;
  const int count = ::epoll_wait(events_.get(), events.data(), kAtOnce, timeout_ms);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    const uint64_t number = event.data.u64 / 2;
    if (number == 0) {
      eventfd_t ignored = 0;
      ::eventfd_read(wake_.get(), &ignored);
      continue;
    }
    due_.SetReady(number);
    const bool of_client = event.data.u64 % 2 != 0;
    const auto found = connections_.find(number);
    if (found != connections_.end() && of_client && (event.events & EPOLLHUP) != 0)
      found->second->HangUp();
  }
}

void Relay::TakeArrivals() {
  std::vector<std::unique_ptr<RelayedConnection>> arrivals;
  {
    MutexLock lock(&mutex_);
    arrivals.swap(arrivals_);
  }
  for (std::unique_ptr<RelayedConnection>& arrival : arrivals) {
    const uint64_t number = ++newest_;
    // Edges: each side is read and written until it would block.
    epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                      .data = {.u64 = 2 * number}};
    bool watched = ::epoll_ctl(events_.get(), EPOLL_CTL_ADD, arrival->server(), &event) == 0;
    event.data.u64 = 2 * number + 1;
    watched = watched && ::epoll_ctl(events_.get(), EPOLL_CTL_ADD, arrival->client(), &event) == 0;
    if (!watched) {
      LogClosed(arrival->uid(), absl::UnavailableError(std::strerror(errno)));
      continue;
    }
    connections_[number] = std::move(arrival);
    due_.SetReady(number);
  }
}

void Relay::MoveAll() {
  const int64_t now_ns = Now();
  for (const uint64_t number : due_.Drain(now_ns)) Move(number, now_ns);
}

void Relay::Move(uint64_t number, int64_t now_ns) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  using Outcome = RelayedConnection::Outcome;
  RelayedConnection& connection = *found->second;
  const bool was_broken = !connection.broken().ok();
  const Outcome outcome = connection.Move(now_ns);
  if (!was_broken && !connection.broken().ok()) LogClosed(connection.uid(), connection.broken());
  due_.SetTimed(number, outcome == Outcome::kTimed);
  if (outcome == Outcome::kAgain) due_.SetReady(number);
  if (outcome != Outcome::kOver) return;
  for (const int fd : {connection.client(), connection.server()})
    ::epoll_ctl(events_.get(), EPOLL_CTL_DEL, fd, nullptr);
  connections_.erase(found);
}

void Relay::LogClosed(uint32_t uid, const absl::Status& why) {
  if (const auto more = closed_.Next(absl::GetCurrentTimeNanos()); more.has_value())
    LogWarning("a connection of uid {} is closed: {} ({} more since the last such line)", uid,
               Text(why), *more);
}

}  // namespace perfd::daemon
