// Recovery mode and the signals of the program: those that wait for the end of a run, and handlers that return into it.
#include <thread>

#include "tests/integration/shadow/recovery_fixture.h"

namespace perfd::agent {
namespace {

FaultyPage* g_page;
volatile sig_atomic_t g_faults;
volatile sig_atomic_t g_blocked_in_handler;
double (*volatile g_sum)(const double*, int64_t) = loop_sum;
volatile double g_nested;

void MakeReadable(int) {
  const double values[] = {1, 2};
  g_faults = g_faults + 1;
  g_nested = g_sum(values, 2);  // the same loop, while this thread is in it
  g_page->Show();
  g_blocked_in_handler = IsBlocked(SIGTERM);
}

class FaultTest : public RecoveryTest {
 protected:
  FaultTest() {
    g_page = &page_;
    g_faults = 0;
    g_blocked_in_handler = 0;
    g_nested = 0;
  }
  ~FaultTest() override { signal(SIGSEGV, SIG_DFL); }

  // One entry whose copy faults and needs its own GS base to the end.
  void RunIntoTheFault(uint32_t site) {
    Begin(site, {injector_.Count(kSum)}, 10);
    page_.Hide();
    EXPECT_EQ(loop_sum(page_.values(), FaultyPage::kValues), 512.0);
    EXPECT_FALSE(IsBlocked(SIGTERM));
  }
  void ExpectItWentOn(uint32_t site) {
    EXPECT_EQ(g_faults, 1) << "in the copy; the loop found the page";
    EXPECT_EQ(g_nested, 3.0);
    EXPECT_EQ(g_blocked_in_handler, 1) << "the run was not over";
    EXPECT_EQ(injector_.site(site).recoveries, 1u);
    EXPECT_EQ(injector_.region().busy_entries, 1u);
    EXPECT_EQ(Result(0).iterations, 512u);
    EXPECT_GT(Result(0).original, 0u);
    ExpectNobodyInside();
  }

  FaultyPage page_;
};

// Its own way of making pages appear works for the copy as it would for the loop; its frame lies where nothing is needed.
TEST_F(FaultTest, AFaultThatTheProgramHandlesIsHandled) {
  const uint32_t site = injector_.Install(kSum);
  signal(SIGSEGV, MakeReadable);
  RunIntoTheFault(site);
  ExpectItWentOn(site);
}

// The handler's stack lies above where the run is: its entry of the same loop looks as one after a jump does. With
// SS_AUTODISARM, sigaltstack does not even tell the handler that it is on another stack.
class OtherStackTest : public FaultTest, public ::testing::WithParamInterface<unsigned> {};

constexpr unsigned kAutoDisarm = 1U << 31;  // linux/signal.h, SS_AUTODISARM
INSTANTIATE_TEST_SUITE_P(Flags, OtherStackTest, ::testing::Values(0U, kAutoDisarm));

TEST_P(OtherStackTest, AHandlerThereHasNotJumped) {
  const uint32_t site = injector_.Install(kSum);
  std::thread worker([&] {
    alignas(64) char above[1 << 16];
    stack_t stack = {
        .ss_sp = above, .ss_flags = static_cast<int>(GetParam()), .ss_size = sizeof(above)};
    ASSERT_EQ(sigaltstack(&stack, nullptr), 0);
    struct sigaction action = {};
    action.sa_handler = MakeReadable;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGSEGV, &action, nullptr);
    RunIntoTheFault(site);
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, nullptr);
  });
  worker.join();
  ExpectItWentOn(site);
}

volatile sig_atomic_t g_signals;
void OnUser(int) {
  const double values[] = {1, 2};
  g_signals = g_signals + 1;
  g_nested = g_sum(values, 2);
}

TEST_F(RecoveryTest, SignalsWaitUntilTheRunIsOver) {
  std::vector<double> v = Ramp(100);
  const uint32_t site = injector_.Install(kSum);
  // kill(getpid(), SIGUSR1)
  const uint64_t raise =
      injector_.Raw({0xb8, 0x27, 0, 0, 0,    0x0f, 0x05, 0x48, 0x89, 0xc7, 0xbe,
                     0x0a, 0,    0, 0, 0xb8, 0x3e, 0,    0,    0,    0x0f, 0x05});
  Begin(site, {raise, injector_.Ref(kSum)}, 2);
  g_signals = 0;
  signal(SIGUSR1, OnUser);
  EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
  // The handler's own entry has another length and so begins with the copy that signals: the second and last run.
  EXPECT_EQ(g_signals, 2);
  EXPECT_EQ(g_nested, 3.0);
  EXPECT_EQ(injector_.site(site).recoveries, 2u);
  EXPECT_GT(Result(0).original, 0u);
  EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
  signal(SIGUSR1, SIG_DFL);
  ExpectNobodyInside();
}

}  // namespace
}  // namespace perfd::agent
