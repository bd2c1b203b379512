#include "agent/attach/stop_watchdog.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

namespace perfd {
namespace {

// In a process of its own: the test's own SIGALRM must stay as it is.
[[noreturn]] void HangUnderWatchdog(bool disarm) {
  const auto watchdog = StopWatchdog::Create();
  if (!watchdog.ok()) std::exit(1);
  (*watchdog)->Arm(20'000'000);
  if (disarm) (*watchdog)->Disarm();
  ::usleep(disarm ? 60'000 : 10'000'000);
  std::exit(3);
}

TEST(StopWatchdogTest, KillsAProcessThatHangs) {
  EXPECT_EXIT(HangUnderWatchdog(false), ::testing::KilledBySignal(SIGALRM), "");
}

TEST(StopWatchdogTest, DisarmedItDoesNot) {
  EXPECT_EXIT(HangUnderWatchdog(true), ::testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace perfd
