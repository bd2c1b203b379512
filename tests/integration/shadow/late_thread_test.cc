// A thread that lost its CPU on its way to a rendezvous, while the agent gave it up and wrote another plan.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/integration/shadow/payload_fixture.h"

namespace perfd::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct Late {
  SelfHosted* injector;
  uint32_t site;
  bool came = false;
};
Late* g_late = nullptr;

// What the agent does meanwhile: as soon as nobody is in place, a plan for recovery, which has no team.
void OtherPlan(Late* late) {
  late->came = true;
  late->injector->SetMode(late->site, kModeIdle);
  if (late->injector->region().in_situ != 0) return;
  late->injector->plan().team = 0;
  late->injector->plan().recovery.limit = 1;
}

void OnMaskCall(int, siginfo_t*, void* context) {
  greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (registers[REG_RDX] != 0) *reinterpret_cast<uint64_t*>(registers[REG_RDX]) = 0;
  registers[REG_RAX] = 0;
  if (g_late != nullptr && !g_late->came) OtherPlan(g_late);
}

// From here on this thread's changes of its signal mask, the first thing it does at a rendezvous, arrive in OnMaskCall.
bool TrapMaskCalls() {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {4, code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

TEST_F(PayloadTest, ALateThreadDoesNotMeetForAnotherPlan) {
  struct sigaction action {};
  action.sa_sigaction = OnMaskCall;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  const uint64_t count = injector.Count(kSum);
  injector.Plan(site, 1, {{count, 0, 0, 0, 0}});
  injector.Arm(site);
  std::vector<double> v = Ramp(100);
  Late late{&injector, site};
  g_late = &late;
  bool trapped = false;
  double sum = 0;
  const auto begin = steady_clock::now();
  std::thread([&] {
    trapped = TrapMaskCalls();
    if (trapped) sum = loop_sum(v.data(), 100);
  }).join();
  const auto elapsed = steady_clock::now() - begin;
  g_late = nullptr;
  signal(SIGSYS, SIG_DFL);
  if (!trapped) GTEST_SKIP() << "SKIPPED: no filter can be set here";
  EXPECT_TRUE(late.came);
  EXPECT_EQ(sum, 5050.0);
  EXPECT_LT(elapsed, milliseconds(1000));  // a member without a leader waits for two seconds
  EXPECT_EQ(SitePhase(injector.site(site).state), kPhaseArmed);
  EXPECT_EQ(injector.site(site).gathers, 0u);
  EXPECT_EQ(injector.region().in_situ, 0u);
  injector.ForgetThreads();
  injector.Plan(site, 1, {{count, 0, 0, 0, 0}});
  injector.Arm(site);
  EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeDone);
  EXPECT_EQ(injector.result(0, 0).iterations, 100u);
  EXPECT_EQ(injector.region().in_situ, 0u);
}

// The agent writes no other plan while somebody may read this one.
TEST_F(PayloadTest, WhoWaitsForItsTeamIsInPlace) {
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  ShadowPlan& plan = injector.Plan(site, 2, {{injector.Count(kSum), 0, 0, 0, 0}});
  plan.gather_ns = 200'000'000;
  plan.retries = 0;
  injector.Arm(site);
  std::vector<double> v = Ramp(100);
  double sum = 0;
  std::thread member([&] { sum = loop_sum(v.data(), 100); });
  const auto limit = steady_clock::now() + milliseconds(5000);
  uint32_t inside = 0;
  while (inside == 0 && steady_clock::now() < limit &&
         __atomic_load_n(&injector.site(site).timeouts, __ATOMIC_SEQ_CST) == 0)
    inside = __atomic_load_n(&injector.region().in_situ, __ATOMIC_SEQ_CST);
  member.join();
  EXPECT_EQ(inside, 1u);
  EXPECT_EQ(injector.region().in_situ, 0u);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeGatherTimeout);
  EXPECT_EQ(sum, 5050.0);
}

}  // namespace
}  // namespace perfd::agent
