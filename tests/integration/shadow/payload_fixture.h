// tests/integration/shadow/payload_fixture.h - loops of the test itself, with perfd in them: after any shadow nothing is left.
#ifndef TESTS_INTEGRATION_SHADOW_PAYLOAD_FIXTURE_H_
#define TESTS_INTEGRATION_SHADOW_PAYLOAD_FIXTURE_H_

#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "tests/integration/shadow/self_hosted.h"

namespace perfd::agent {

inline const LoopText kSum = TextOf(loop_sum_header, loop_sum_exit);
inline const LoopText kUpdate = TextOf(loop_update_header, loop_update_exit);
inline const LoopText kState = TextOf(loop_state_header, loop_state_exit);

inline std::vector<double> Ramp(int64_t n) {
  std::vector<double> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), 1.0);
  return v;
}

inline int OpenDescriptors() {
  int n = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    n += !entry.path().empty();
  return n;
}

inline volatile sig_atomic_t g_child_signals = 0;

// After any shadow: no child, no signal, no descriptor.
class PayloadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    g_child_signals = 0;
    signal(SIGCHLD, [](int) { g_child_signals = g_child_signals + 1; });
    descriptors_ = OpenDescriptors();
  }
  void TearDown() override {
    EXPECT_EQ(g_child_signals, 0);
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG | __WALL), -1);
    EXPECT_EQ(errno, ECHILD);
    EXPECT_EQ(OpenDescriptors(), descriptors_);
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, nullptr, &blocked);
    EXPECT_FALSE(sigismember(&blocked, SIGTERM));
    signal(SIGCHLD, SIG_DFL);
  }
  int descriptors_ = 0;
};

}  // namespace perfd::agent

#endif  // TESTS_INTEGRATION_SHADOW_PAYLOAD_FIXTURE_H_
