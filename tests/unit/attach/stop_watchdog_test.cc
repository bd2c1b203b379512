#include "agent/attach/stop_watchdog.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

namespace perfd::agent {
namespace {

enum class Hang { kSleeps, kStopped, kDisarmed };

// In a process of its own, which it kills.
[[noreturn]] void HangUnderWatchdog(Hang hang) {
  const auto watchdog = StopWatchdog::Create();
  if (!watchdog.ok()) std::exit(1);
  (*watchdog)->Arm(20'000'000);
  if (hang == Hang::kDisarmed) (*watchdog)->Disarm();
  if (hang == Hang::kStopped) ::raise(SIGSTOP);
  ::usleep(hang == Hang::kDisarmed ? 60'000 : 10'000'000);
  std::exit(3);
}

TEST(StopWatchdogTest, KillsAProcessThatHangs) {
  EXPECT_EXIT(HangUnderWatchdog(Hang::kSleeps), ::testing::KilledBySignal(SIGKILL), "");
}

TEST(StopWatchdogTest, KillsAProcessThatWasStopped) {
  EXPECT_EXIT(HangUnderWatchdog(Hang::kStopped), ::testing::KilledBySignal(SIGKILL), "");
}

TEST(StopWatchdogTest, DisarmedItDoesNot) {
  EXPECT_EXIT(HangUnderWatchdog(Hang::kDisarmed), ::testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace perfd::agent
