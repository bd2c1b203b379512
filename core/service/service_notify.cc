#include "core/service/service_notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace perfd {
namespace {

// The variable's value, gone from the environment; empty when it is not set.
std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  ::unsetenv(name);
  return text;
}

// WATCHDOG_PID names the process that is meant; without it everyone is.
absl::Duration TakeWatchdog() {
  const std::string usec = Variable("WATCHDOG_USEC");
  const std::string pid = Variable("WATCHDOG_PID");
  int64_t value = 0;
  int64_t whose = 0;
  if (!absl::SimpleAtoi(usec, &value) || value <= 0) return absl::ZeroDuration();
  if (!pid.empty() && (!absl::SimpleAtoi(pid, &whose) || whose != ::getpid()))
    return absl::ZeroDuration();
  return absl::Microseconds(value);
}

int64_t MonotonicUsec() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

}  // namespace

ServiceNotify ServiceNotify::FromEnvironment() {
  ServiceNotify notify;
  notify.address_ = Variable("NOTIFY_SOCKET");
  const absl::Duration watchdog = TakeWatchdog();
  std::string& address = notify.address_;
  const bool usable = address.size() > 1 && address.size() < sizeof(sockaddr_un::sun_path) &&
                      (address[0] == '/' || address[0] == '@');
  if (!usable) return notify;
  if (address[0] == '@') address[0] = '\0';
  notify.socket_ = UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (notify.socket_.valid()) notify.watchdog_ = watchdog;
  return notify;
}

void ServiceNotify::Send(const std::string& message) const {
  if (!socket_.valid()) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, address_.data(), address_.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  const auto* generic = static_cast<const sockaddr*>(static_cast<const void*>(&address));
  (void)::sendto(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                 generic, size);
}

void ServiceNotify::Ready(absl::string_view status) const {
  Send(absl::StrCat("READY=1\nSTATUS=", absl::StrReplaceAll(status, {{"\n", " "}})));
}

// The time is for Type=notify-reload (systemd 253 and later), which waits for a Ready after it.
void ServiceNotify::Reloading() const {
  Send(absl::StrCat("RELOADING=1\nMONOTONIC_USEC=", MonotonicUsec()));
}

void ServiceNotify::Stopping() const {
  Send("STOPPING=1");
}

void ServiceNotify::Alive() const {
  Send("WATCHDOG=1");
}

}  // namespace perfd
