#include "daemon/reload_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/log.h"
#include "core/base/notification.h"

namespace perfd::daemon {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr absl::Duration kLongest = absl::Seconds(20);  // of a test that fails

class ReloadThreadTest : public testing::Test {
 protected:
  ReloadThreadTest() : manager_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    InitLog("perfd", LogLevel::kInfo);
    const std::string name = "perfd-reload-test-" + std::to_string(::getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(::bind(manager_.get(), static_cast<sockaddr*>(static_cast<void*>(&address)), size),
              0);
    ::setenv("NOTIFY_SOCKET", ("@" + name).c_str(), 1);
    notify_ = ServiceNotify::FromEnvironment();
  }
  // What the service manager hears next.
  std::string WaitForDoorbell() {
    pollfd ready{manager_.get(), POLLIN, 0};
    if (::poll(&ready, 1, 20'000) != 1) return "nothing";
    char text[512];
    const ssize_t size = ::recv(manager_.get(), text, sizeof(text), 0);
    return size < 0 ? "" : std::string(text, static_cast<size_t>(size));
  }
  void Begin(std::function<absl::Status()> apply) {
    PerfdFlags flags;
    flags.config = "/x";
    std::vector<LiveSetting> settings;
    settings.push_back({"thing", [apply](const PerfdFlags&) { return apply(); }});
    const Reloader::Read read = [] { return absl::StatusOr<PerfdFlags>(PerfdFlags()); };
    thread_ = std::make_unique<ReloadThread>(Reloader(flags, read, std::move(settings)), notify_);
  }

  UniqueFd manager_;
  ServiceNotify notify_;
  std::unique_ptr<ReloadThread> thread_;
};

TEST_F(ReloadThreadTest, TheManagerIsToldHowItWent) {
  std::atomic<bool> good{true};
  Begin([&] { return good ? absl::OkStatus() : absl::InvalidArgumentError("broken"); });
  thread_->Ask();
  EXPECT_THAT(WaitForDoorbell(), StartsWith("RELOADING=1\n"));
  const std::string ready = WaitForDoorbell();
  EXPECT_THAT(ready, StartsWith("READY=1\n"));
  EXPECT_THAT(ready, testing::Not(HasSubstr("log")));
  good = false;
  thread_->Ask();
  EXPECT_THAT(WaitForDoorbell(), StartsWith("RELOADING=1\n"));
  EXPECT_THAT(WaitForDoorbell(),
              HasSubstr("not all of the last reload was done (1 thing): see the log"));
}

// Asking does not wait, and what is asked for meanwhile is one more reload.
TEST_F(ReloadThreadTest, AReloadThatHangsHoldsUpNobody) {
  Notification begun, go_on;
  std::atomic<int> reloads{0};
  Begin([&] {
    if (++reloads == 1) {
      begun.Notify();
      go_on.WaitForNotificationWithTimeout(kLongest);
    }
    return absl::OkStatus();
  });
  thread_->Ask();
  ASSERT_TRUE(begun.WaitForNotificationWithTimeout(kLongest));
  for (int i = 0; i < 5; ++i) thread_->Ask();
  EXPECT_EQ(reloads, 1);
  go_on.Notify();
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(WaitForDoorbell(), StartsWith("RELOADING=1\n"));
    EXPECT_THAT(WaitForDoorbell(), StartsWith("READY=1\n"));
  }
  thread_.reset();
  EXPECT_EQ(reloads, 2);
}

TEST_F(ReloadThreadTest, WithoutFilesThereIsNothingToAsk) {
  ReloadThread thread(Reloader({}, {}, {}), notify_);
  EXPECT_FALSE(thread.Asking());
  Begin([] { return absl::OkStatus(); });
  EXPECT_TRUE(thread_->Asking());
}

}  // namespace
}  // namespace perfd::daemon
