// Batches of instances in the rank, timed by the payload: one thread at a time, and whatever interrupts it.
#include <setjmp.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "tests/integration/shadow/payload_fixture.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kTurns = 1000;
constexpr int64_t kPasses = 10'000;
constexpr double kSumOfRamp = 50'005'000.0;

class LivePayloadTest : public PayloadTest {
 protected:
  LivePayloadTest() : site_(injector_.InstallBatches(kSum)) {
    injector_.turns(site_).wanted = kTurns;
  }

  void Enter(int times) {
    for (int i = 0; i < times; ++i) ASSERT_EQ(loop_sum(values_.data(), kPasses), kSumOfRamp);
  }

  std::vector<double> values_ = Ramp(kPasses);
  SelfHosted injector_;
  uint32_t site_;
};

TEST_F(LivePayloadTest, ABatchIsLeftAtItsCountAndTheNextOneBegins) {
  injector_.SetMode(site_, kModeLiveBatch);
  Enter(1);
  ASSERT_GE(injector_.region().live_next, 10u);
  for (uint32_t i = 0; i < 10; ++i) {
    EXPECT_EQ(injector_.live(i).turns, kTurns) << i;
    EXPECT_EQ(injector_.live(i).tid, static_cast<uint32_t>(gettid()));
    // Dependent additions take at least two cycles each, whatever the pace of the TSC.
    EXPECT_GT(injector_.live(i).end - injector_.live(i).start, kTurns / 2);
  }
  EXPECT_EQ(injector_.site(site_).mode, uint32_t{kModeLiveBatch});
  EXPECT_EQ(injector_.turns(site_).thread, 0u);
}

TEST_F(LivePayloadTest, ABatchThatTheLoopEndsHasFewerTurns) {
  injector_.turns(site_).wanted = 2 * kPasses;
  injector_.SetMode(site_, kModeLiveBatch);
  Enter(3);
  ASSERT_EQ(injector_.region().live_next, 3u);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(injector_.live(i).turns, uint64_t{kPasses});
}

TEST_F(LivePayloadTest, EndsAtItsLimit) {
  injector_.SetMode(site_, kModeLiveBatch);
  Enter(20);
  EXPECT_EQ(injector_.region().live_next, injector_.region().live_limit);
  EXPECT_EQ(injector_.site(site_).mode, uint32_t{kModeIdle});
}

TEST_F(LivePayloadTest, ThreadsTakeTurns) {
  injector_.region().live_limit = 500;
  injector_.SetMode(site_, kModeLiveBatch);
  std::vector<std::thread> threads;
  const auto enough = [this] {
    return __atomic_load_n(&injector_.region().live_next, __ATOMIC_SEQ_CST) >= 500;
  };
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000 && !enough(); ++i) Enter(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Who had begun when the last one was written ends his, too.
  EXPECT_GE(injector_.region().live_next, 500u);
  EXPECT_LE(injector_.region().live_next, 502u);
  uint64_t last = 0;
  for (uint32_t i = 0; i < 500; ++i) {
    const LiveRecord& record = injector_.live(i);
    EXPECT_GE(record.turns, 1u);
    EXPECT_LE(record.turns, kTurns);
    EXPECT_GE(record.start, last) << "no two at a time";
    last = record.end;
  }
  EXPECT_EQ(injector_.turns(site_).thread, 0u);
}

// A thread that was sent to the batch when single instances were asked for goes through the live copy, and the other way round.
TEST_F(LivePayloadTest, SingleInstancesAreNoBatches) {
  injector_.SetMode(site_, kModeLive);
  Enter(5);
  EXPECT_EQ(injector_.region().live_next, 5u);
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(injector_.live(i).turns, 0u);
}

TEST_F(LivePayloadTest, WithoutAnAgentNothingBegins) {
  injector_.SetMode(site_, kModeLiveBatch);
  injector_.region().stale_ticks = uint64_t{1} << 30;
  injector_.region().heartbeat_ticks = ReadTicks() - 2 * injector_.region().stale_ticks;
  Enter(3);
  EXPECT_EQ(injector_.region().live_next, 0u);
  EXPECT_EQ(injector_.site(site_).mode, uint32_t{kModeIdle});
}

volatile sig_atomic_t g_handled;
double g_sum;
std::vector<double>* g_values;
void SumInHandler(int) {
  g_handled = g_handled + 1;
  g_sum = loop_sum(g_values->data(), kPasses);
}

sigjmp_buf g_back;
void JumpAway(int) {
  siglongjmp(g_back, 1);
}

// To this very thread, once, after so long.
void AlarmAfter(int64_t us, void (*handler)(int)) {
  signal(SIGALRM, handler);
  ualarm(static_cast<useconds_t>(us), 0);
}

TEST_F(LivePayloadTest, AHandlerThatRunsTheLoopIsNotCounted) {
  g_values = &values_;
  g_handled = 0;
  injector_.region().live_limit = 400;
  injector_.turns(site_).wanted = 1u << 31;
  injector_.SetMode(site_, kModeLiveBatch);
  AlarmAfter(300, SumInHandler);
  while (g_handled == 0) Enter(1);
  Enter(1);
  EXPECT_EQ(g_sum, kSumOfRamp);
  for (uint32_t i = 0; i < std::min(injector_.region().live_next, 400u); ++i)
    EXPECT_EQ(injector_.live(i).turns, uint64_t{kPasses}) << i;
  EXPECT_EQ(injector_.turns(site_).thread, 0u);
}

// Its batch is never ended: nobody else gets one, and the loop runs on.
TEST_F(LivePayloadTest, AHandlerThatJumpsAwayEndsTheTiming) {
  for (int i = 0; i < 20 && injector_.turns(site_).thread == 0; ++i) {
    injector_.turns(site_).wanted = 1u << 31;
    injector_.region().live_next = 0;
    injector_.SetMode(site_, kModeLiveBatch);
    if (sigsetjmp(g_back, 1) == 0) {
      AlarmAfter(200 + 40 * i, JumpAway);
      for (;;) Enter(1);
    }
  }
  ASSERT_EQ(injector_.turns(site_).thread, static_cast<uint32_t>(gettid()));
  injector_.region().live_next = 0;
  injector_.SetMode(site_, kModeLiveBatch);
  std::thread([this] { Enter(5); }).join();
  EXPECT_EQ(injector_.region().live_next, 0u);
  EXPECT_EQ(injector_.site(site_).mode, uint32_t{kModeIdle});
}

}  // namespace
}  // namespace perfd::agent
