// Handlers of the program that leave by siglongjmp, out of a copy or anywhere else on the way: what the run had changed is given
// back, and nobody is counted for ever.
#include <alloca.h>
#include <sys/syscall.h>
#include <time.h>

#include <chrono>
#include <csetjmp>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/integration/shadow/recovery_fixture.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kOwnGs = 0x123456789000;

void SetGsBase(uint64_t base) {
  constexpr int kSet = 0x1001;
  syscall(SYS_arch_prctl, kSet, base);
}
uint64_t GsBase() {
  constexpr int kGet = 0x1004;
  uint64_t base = 0;
  syscall(SYS_arch_prctl, kGet, &base);
  return base;
}

FaultyPage* g_page;
sigjmp_buf g_back;
void ShowAndJump(int) {
  g_page->Show();
  siglongjmp(g_back, 1);
}

// A little below the caller, so that the entries of the tests themselves are not as deep.
constexpr size_t kBelow = 4096;
__attribute__((noinline)) double SumFromHere(const double* values, int64_t n, size_t bytes) {
  void* const room = alloca(bytes);
  asm volatile("" ::"r"(room) : "memory");
  const double sum = loop_sum(values, n);
  asm volatile("" ::"r"(room) : "memory");
  return sum;
}

// Far below, where nothing of a signal's frame is left, or all of it.
__attribute__((noinline)) double SumBelowClean(const double* values, int64_t n) {
  volatile char room[32768];
  for (volatile char& byte : room) byte = 0;
  return loop_sum(values, n) + room[0];
}
__attribute__((noinline)) double SumBelow(const double* values, int64_t n) {
  volatile char room[32768];
  asm volatile("" ::"r"(room) : "memory");
  const double sum = loop_sum(values, n);
  asm volatile("" ::"r"(room) : "memory");
  return sum;
}

class JumpTest : public RecoveryTest {
 protected:
  JumpTest() {
    g_page = &page_;
    SetGsBase(kOwnGs);
  }
  ~JumpTest() override {
    signal(SIGSEGV, SIG_DFL);
    Unblock(SIGSEGV);
    SetGsBase(0);
  }

  // Jumps out of a copy. The mask is not saved: without us SIGSEGV would stay blocked, and nothing else.
  void JumpOut(uint32_t site, size_t below = kBelow) {
    Begin(site, {injector_.Ref(kSum)}, 10);
    signal(SIGSEGV, ShowAndJump);
    page_.Hide();
    if (sigsetjmp(g_back, 0) == 0) {
      SumFromHere(page_.values(), FaultyPage::kValues, below);
      ADD_FAILURE() << "no fault";
    }
  }
  void ExpectTakenAlong() {
    EXPECT_EQ(Own().run.inside, uint32_t{kInCopy});
    EXPECT_TRUE(IsBlocked(SIGTERM)) << "or there is nothing to give back";
    EXPECT_NE(GsBase(), kOwnGs);
  }
  void ExpectGivenBack() {
    EXPECT_EQ(Own().run.inside, uint32_t{kJumped});
    EXPECT_EQ(injector_.region().in_situ, 0u);
    EXPECT_FALSE(IsBlocked(SIGTERM));
    EXPECT_TRUE(IsBlocked(SIGSEGV)) << "as without us: its handler was left";
    EXPECT_EQ(GsBase(), kOwnGs);
  }
  void Enter() { EXPECT_EQ(loop_sum(page_.values(), FaultyPage::kValues), 512.0); }
  // The agent has been away for so many times what makes its heartbeat stale.
  void MakeStale(uint64_t times) {
    injector_.region().stale_ticks = uint64_t{1} << 30;
    injector_.region().heartbeat_ticks =
        ReadTicks() - times * injector_.region().stale_ticks - 1000;
  }

  FaultyPage page_;
};

// It may still be an entry of the recovery, or one that is only counted (InSituRun::Await); the agent may be gone.
struct NextEntry {
  uint32_t mode;
  bool stale;
};
class NextEntryTest : public JumpTest, public ::testing::WithParamInterface<NextEntry> {};

INSTANTIATE_TEST_SUITE_P(
    Modes, NextEntryTest,
    ::testing::Values(NextEntry{kModeRecovery, false}, NextEntry{kModeEntryCount, false},
                      NextEntry{kModeRecovery, true}, NextEntry{kModeEntryCount, true}),
    [](const auto& test) {
      return std::string(test.param.mode == kModeEntryCount ? "Counted" : "Run") +
             (test.param.stale ? "WithoutAnAgent" : "");
    });

TEST_P(NextEntryTest, EverythingIsGivenBack) {
  const uint32_t site = injector_.Install(kSum);
  JumpOut(site);
  ExpectTakenAlong();
  if (GetParam().stale) MakeStale(2);
  injector_.SetMode(site, GetParam().mode);
  Enter();
  ExpectGivenBack();
  for (int i = 0; i < 5; ++i) Enter();
  ExpectGivenBack();
  EXPECT_EQ(injector_.site(site).recoveries, 1u) << "no further runs in this thread";
  if (GetParam().stale) {
    EXPECT_EQ(injector_.site(site).mode, uint32_t{kModeIdle});
  }
}

TEST_F(JumpTest, AlsoByAnEntryThatIsDeeperOnTheStack) {
  const uint32_t site = injector_.Install(kSum);
  JumpOut(site);
  EXPECT_EQ(SumBelow(page_.values(), 512), 512.0);
  ExpectTakenAlong();  // what is on the stack may be the frame of a handler that will return
  EXPECT_EQ(SumBelowClean(page_.values(), 512), 512.0);
  ExpectGivenBack();
}

// A signal's frame is aligned: at some depths what the payload has pushed before the run is not overwritten by it.
TEST_F(JumpTest, NothingOnTheStackLooksLikeAFrame) {
  const uint32_t site = injector_.Install(kSum);
  for (const size_t shift : {0U, 16U, 32U, 48U}) {
    injector_.ForgetThreads();
    Unblock(SIGSEGV);
    JumpOut(site, kBelow + shift);
    EXPECT_EQ(SumFromHere(page_.values(), FaultyPage::kValues, kBelow + shift + 768), 512.0);
    ExpectGivenBack();
  }
}

// Whoever jumps with a mask of his own has the right one.
TEST_F(JumpTest, AMaskOfItsOwnIsKept) {
  const uint32_t site = injector_.Install(kSum);
  JumpOut(site);
  sigset_t own;
  sigfillset(&own);
  sigdelset(&own, SIGUSR2);
  pthread_sigmask(SIG_SETMASK, &own, nullptr);
  Enter();
  EXPECT_EQ(Own().run.inside, uint32_t{kJumped});
  EXPECT_EQ(GsBase(), kOwnGs);
  EXPECT_TRUE(IsBlocked(SIGTERM));
  EXPECT_FALSE(IsBlocked(SIGUSR2));
  sigemptyset(&own);
  pthread_sigmask(SIG_SETMASK, &own, nullptr);
}

// The thread that has jumped is not the next one to enter. For some seconds entries stay slow for its sake, not for ever.
TEST_F(JumpTest, WithoutAnAgentTheDoorStaysOpenForAWhile) {
  const uint32_t site = injector_.Install(kSum);
  const auto another = [&] {
    std::thread([] {
      std::vector<double> v = Ramp(100);
      EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
    }).join();
  };
  JumpOut(site);
  MakeStale(5);
  another();
  EXPECT_EQ(injector_.site(site).mode, uint32_t{kModeRecovery});
  EXPECT_EQ(injector_.site(site).recoveries, 1u) << "but nothing runs";
  Enter();
  ExpectGivenBack();
  another();
  EXPECT_EQ(injector_.site(site).mode, uint32_t{kModeIdle});

  injector_.ForgetThreads();
  Unblock(SIGSEGV);
  injector_.region().heartbeat_ticks = ReadTicks();
  JumpOut(site);
  ExpectTakenAlong();
  MakeStale(12);
  another();
  EXPECT_EQ(injector_.site(site).mode, uint32_t{kModeIdle});
  injector_.SetMode(site, kModeEntryCount);
  injector_.region().heartbeat_ticks = ReadTicks();
  Enter();
  ExpectGivenBack();
}

// LiveRegion::ForgetEndedThreads gives the record to the next thread: nothing of the run may be kept anywhere else.
TEST_F(JumpTest, WhatAThreadTookAlongEndsWithItsRecord) {
  const uint32_t site = injector_.Install(kSum);
  std::thread([&] {
    JumpOut(site);
    EXPECT_EQ(Own().run.inside, uint32_t{kInCopy});
  }).join();
  EXPECT_EQ(injector_.region().in_situ, 0u);
  injector_.ForgetThreads();
  ExpectNobodyInside();
  Begin(site, {injector_.Ref(kSum)}, 3);
  for (int i = 0; i < 3; ++i) Enter();
  EXPECT_EQ(Runs(site), 3u);
  ExpectNobodyInside();
}

volatile sig_atomic_t g_may_jump;
volatile sig_atomic_t g_jumps;
void JumpWhereItMay(int) {
  if (!g_may_jump) return;
  g_may_jump = 0;
  g_jumps = g_jumps + 1;
  siglongjmp(g_back, 1);
}

// Every 50 us to this very thread.
class SignalClock {
 public:
  explicit SignalClock(int signal) {
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal;
    event._sigev_un._tid = gettid();
    const itimerspec often = {{0, 50'000}, {0, 50'000}};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0 ||
        timer_settime(timer_, 0, &often, nullptr) != 0)
      abort();
  }
  ~SignalClock() { timer_delete(timer_); }
  SignalClock(const SignalClock&) = delete;
  SignalClock& operator=(const SignalClock&) = delete;

 private:
  timer_t timer_{};
};

// At any instruction of an entry: nobody may be left who is counted in but never counted out.
TEST_F(RecoveryTest, HandlersThatJumpAwayLeaveNobodyInside) {
  std::vector<double> v = Ramp(20);
  const uint32_t site = injector_.Install(kSum);
  const uint64_t ref = injector_.Ref(kSum);
  signal(SIGALRM, JumpWhereItMay);
  g_jumps = 0;
  g_may_jump = 0;
  {
    SignalClock clock(SIGALRM);
    volatile int rounds = 0;
    while (g_jumps < 3000 && rounds < 2'000'000) {
      rounds = rounds + 1;
      if (injector_.site(site).mode != kModeRecovery) Begin(site, {ref}, 8000);
      if (sigsetjmp(g_back, 1) != 0) continue;
      g_may_jump = 1;
      for (int i = 0; i < 50; ++i) loop_sum(v.data(), 20);
      g_may_jump = 0;
    }
  }
  signal(SIGALRM, SIG_DFL);
  EXPECT_GE(g_jumps, 1000) << "too few to say anything";
  ExpectNobodyInside();
  EXPECT_EQ(loop_sum(v.data(), 20), 210.0);
}

// The signal that is let through during a run may also come from elsewhere, at any instruction. The mask is not saved, so each
// jump shows at once what it took along, and whether the next entry gives it back.
TEST_F(JumpTest, MemoryFaultsThatAreSentFromElsewhere) {
  std::vector<double> v = Ramp(20);
  const uint32_t site = injector_.Install(kSum);
  const uint64_t ref = injector_.Ref(kSum);
  signal(SIGSEGV, JumpWhereItMay);
  g_jumps = 0;
  g_may_jump = 0;
  volatile int out_of_copies = 0;
  {
    SignalClock clock(SIGSEGV);
    volatile int rounds = 0;
    while (g_jumps < 2000 && rounds < 2'000'000 && !HasFailure()) {
      rounds = rounds + 1;
      if (injector_.site(site).mode != kModeRecovery) Begin(site, {ref}, 8000);
      if (sigsetjmp(g_back, 0) == 0) {
        g_may_jump = 1;
        for (int i = 0; i < 50; ++i) loop_sum(v.data(), 20);
        g_may_jump = 0;
        continue;
      }
      const bool out_of_copy = Own().run.inside == kInCopy;
      out_of_copies = out_of_copies + out_of_copy;
      ASSERT_TRUE(out_of_copy || Own().busy == 0) << "nobody would find it out";
      ASSERT_TRUE(out_of_copy || !IsBlocked(SIGTERM));
      loop_sum(v.data(), 20);
      ASSERT_NE(Own().run.inside, uint32_t{kInCopy});
      ASSERT_EQ(injector_.region().in_situ, 0u);
      ASSERT_FALSE(IsBlocked(SIGTERM));
      ASSERT_EQ(GsBase(), kOwnGs);
      Own().busy = Own().run.inside = 0;  // so that there are further runs
      Unblock(SIGSEGV);
    }
  }
  signal(SIGSEGV, SIG_IGN);
  EXPECT_GE(out_of_copies, 100) << "too few to say anything";
  ExpectNobodyInside();
}

// The ordinary way, in which nothing runs in the rank: no signal may come where a jump would leave something behind.
class OrdinaryJumpTest : public JumpTest, public ::testing::WithParamInterface<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(Modes, OrdinaryJumpTest,
                         ::testing::Values(uint32_t{kModeIdle}, uint32_t{kModeEntryCount},
                                           uint32_t{kModeLive}, uint32_t{kModeArmed}));

TEST_P(OrdinaryJumpTest, HandlersThatJumpAwayLeaveNothingBehind) {
  std::vector<double> v = Ramp(20);
  const uint32_t site = injector_.Install(kSum);
  const uint64_t count = injector_.Count(kSum);
  const int wanted = GetParam() == kModeArmed ? 150 : 1500;
  injector_.region().live_limit = ~0U;
  injector_.SetMode(site, GetParam() == kModeArmed ? kModeIdle : GetParam());
  signal(SIGALRM, JumpWhereItMay);
  g_jumps = 0;
  g_may_jump = 0;
  {
    SignalClock clock(SIGALRM);
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::seconds(8);  // timers of 4 ms, too
    while (g_jumps < wanted && std::chrono::steady_clock::now() < end && !HasFailure()) {
      if (GetParam() == kModeArmed && injector_.site(site).mode != kModeArmed) {
        injector_.Plan(site, 1, {{count, 0, 0, 0, 0}});
        injector_.Arm(site, 10);
      }
      if (sigsetjmp(g_back, 0) == 0) {
        g_may_jump = 1;
        for (int i = 0; i < 50; ++i) loop_sum(v.data(), 20);
        g_may_jump = 0;
        continue;
      }
      ASSERT_FALSE(IsBlocked(SIGTERM));
      ASSERT_EQ(GsBase(), kOwnGs);
      ASSERT_EQ(injector_.region().in_situ, 0u);
      ASSERT_EQ(injector_.region().busy, 0u);
      ASSERT_EQ(Own().busy, 0u);
      ASSERT_EQ(Own().slot, 0u);
      const uint32_t phase = SitePhase(injector_.site(site).state);
      ASSERT_TRUE(phase == kPhaseIdle || phase == kPhaseArmed) << phase;
      Unblock(SIGALRM);
    }
  }
  signal(SIGALRM, SIG_IGN);
  Unblock(SIGALRM);
  EXPECT_GE(g_jumps, wanted / 3) << "too few to say anything";
  ExpectNobodyInside();
  if (GetParam() == kModeArmed) {
    EXPECT_GT(injector_.site(site).shadows, 3u);
  }
  EXPECT_EQ(loop_sum(v.data(), 20), 210.0);
}

}  // namespace
}  // namespace perfd::agent
