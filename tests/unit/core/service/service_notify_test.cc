#include "core/service/service_notify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace perfd {
namespace {

using ::testing::StartsWith;

// A service manager: a datagram socket with an abstract name.
class Manager {
 public:
  explicit Manager(const std::string& name)
      : name_("@" + name),
        socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(::bind(socket_.get(), static_cast<sockaddr*>(static_cast<void*>(&address)), size), 0);
  }
  const std::string& name() const { return name_; }
  std::string Receive() {
    std::array<char, 512> text{};
    const ssize_t size = ::recv(socket_.get(), text.data(), text.size(), 0);
    return size < 0 ? "" : std::string(text.data(), static_cast<size_t>(size));
  }

 private:
  std::string name_;
  UniqueFd socket_;
};

void Set(const char* name, const std::string& value) {
  ASSERT_EQ(::setenv(name, value.c_str(), 1), 0);
}

TEST(ServiceNotifyTest, SaysWhatSystemdUnderstands) {
  Manager manager("perfd-notify-test-" + std::to_string(::getpid()));
  Set("NOTIFY_SOCKET", manager.name());
  Set("WATCHDOG_USEC", "30000000");
  Set("WATCHDOG_PID", std::to_string(::getpid()));
  const ServiceNotify notify = ServiceNotify::FromEnvironment();
  EXPECT_EQ(notify.watchdog(), absl::Seconds(30));
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
    EXPECT_EQ(std::getenv(name), nullptr) << name << " would be inherited by children";
  notify.Ready("two\nlines");
  EXPECT_EQ(manager.Receive(), "READY=1\nSTATUS=two lines");
  notify.Reloading();
  EXPECT_THAT(manager.Receive(), StartsWith("RELOADING=1\nMONOTONIC_USEC="));
  notify.Alive();
  EXPECT_EQ(manager.Receive(), "WATCHDOG=1");
  notify.Stopping();
  EXPECT_EQ(manager.Receive(), "STOPPING=1");
}

TEST(ServiceNotifyTest, AnotherProcessIsWatched) {
  Manager manager("perfd-notify-test2-" + std::to_string(::getpid()));
  Set("NOTIFY_SOCKET", manager.name());
  Set("WATCHDOG_USEC", "30000000");
  Set("WATCHDOG_PID", std::to_string(::getpid() + 1));
  EXPECT_EQ(ServiceNotify::FromEnvironment().watchdog(), absl::ZeroDuration());
}

TEST(ServiceNotifyTest, WithoutAManagerNothingHappens) {
  ::unsetenv("NOTIFY_SOCKET");
  Set("WATCHDOG_USEC", "30000000");
  const ServiceNotify none = ServiceNotify::FromEnvironment();
  EXPECT_EQ(none.watchdog(), absl::ZeroDuration());
  none.Ready("");
  for (const std::string& odd :
       {std::string("relative"), std::string("/"), std::string(200, '/'), std::string("@")}) {
    Set("NOTIFY_SOCKET", odd);
    ServiceNotify::FromEnvironment().Ready("");
  }
  ServiceNotify().Alive();
}

TEST(ServiceNotifyTest, OddWatchdogTimesAreNone) {
  Manager manager("perfd-notify-test3-" + std::to_string(::getpid()));
  for (const char* odd : {"0", "-1", "abc", "99999999999999999999"}) {
    Set("NOTIFY_SOCKET", manager.name());
    Set("WATCHDOG_USEC", odd);
    EXPECT_EQ(ServiceNotify::FromEnvironment().watchdog(), absl::ZeroDuration()) << odd;
  }
}

}  // namespace
}  // namespace perfd
