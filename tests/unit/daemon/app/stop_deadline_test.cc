#include "daemon/stop_deadline.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/base/log.h"
#include "core/base/notification.h"

namespace perfd::daemon {
namespace {

TEST(StopDeadlineTest, AnOrderlyEndCallsItOff) {
  { const StopDeadline never_begun; }
  StopDeadline deadline;
  deadline.Begin(absl::Hours(1));
}

// Whatever the others wait for.
TEST(StopDeadlineDeathTest, EndsTheProcessInTime) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto hang = [] {
    InitLog("perfd", LogLevel::kInfo);
    StopDeadline deadline;
    deadline.Begin(absl::Milliseconds(50));
    Notification never;
    never.WaitForNotificationWithTimeout(absl::Seconds(20));
    std::exit(1);
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(0), "did not end within 50ms");
}

}  // namespace
}  // namespace perfd::daemon
