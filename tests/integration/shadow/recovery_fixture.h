// tests/integration/shadow/recovery_fixture.h - loops of the test itself whose copies run in the live thread before them.
#ifndef TESTS_INTEGRATION_SHADOW_RECOVERY_FIXTURE_H_
#define TESTS_INTEGRATION_SHADOW_RECOVERY_FIXTURE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <vector>

#include "tests/integration/shadow/payload_fixture.h"

namespace perfd::agent {

inline constexpr uint8_t kRsiWord = 9;  // of SavedRegisters: both loops count it down

inline bool IsBlocked(int signal) {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return sigismember(&blocked, signal) == 1;
}
inline void Unblock(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

// A page of ones, that can be made to fault.
class FaultyPage {
 public:
  FaultyPage() {
    page_ = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page_ != MAP_FAILED) std::fill_n(values(), kValues, 1.0);
  }
  ~FaultyPage() { munmap(page_, kBytes); }
  FaultyPage(const FaultyPage&) = delete;
  FaultyPage& operator=(const FaultyPage&) = delete;

  static constexpr int64_t kValues = 512;
  double* values() { return static_cast<double*>(page_); }
  void Hide() { mprotect(page_, kBytes, PROT_NONE); }
  void Show() { mprotect(page_, kBytes, PROT_READ | PROT_WRITE); }

 private:
  static constexpr size_t kBytes = kValues * sizeof(double);
  void* page_;
};

class RecoveryTest : public PayloadTest {
 protected:
  // The copies of one round; whoever enters `site` from now on runs them in turn.
  ShadowPlan& Begin(uint32_t site, const std::vector<uint64_t>& copies, uint32_t limit) {
    std::vector<RunEntry> runs;
    for (uint64_t copy : copies) runs.push_back({copy, 0, kRunInSitu, 0, 0});
    ShadowPlan& plan = injector_.Plan(site, 1, runs);
    plan.recovery.limit = limit;
    plan.recovery.skips = 5;
    plan.recovery.plus = kRsiWord;
    plan.recovery.minus = static_cast<uint8_t>(kNoWord);
    plan.recovery.offset = ~uint64_t{0};
    plan.recovery.mask = ~uint64_t{0};
    plan.recovery.most_distance = 1 << 20;
    plan.recovery.most_ticks = uint64_t{1} << 50;
    injector_.site(site).recoveries = injector_.site(site).recovery_skips = 0;
    injector_.site(site).recovery_ticks = 0;
    memset(&Result(0), 0, kMostRecoveries * sizeof(RecoveryResult));
    injector_.SetMode(site, kModeRecovery);
    return plan;
  }
  RecoveryResult& Result(uint32_t slot) {
    return *(reinterpret_cast<RecoveryResult*>(&injector_.result(0, 0)) + slot);
  }
  uint32_t Runs(uint32_t site) {
    return std::min(injector_.site(site).recoveries, injector_.plan().recovery.limit);
  }
  // Of the calling thread; its first entry takes one.
  ThreadRecord& Own() {
    uint32_t i = 0;
    while (i < 7 && injector_.record(i).tid != static_cast<uint32_t>(gettid())) ++i;
    return injector_.record(i);
  }
  void ExpectNobodyInside() {
    EXPECT_EQ(injector_.region().in_situ, 0u);
    for (uint32_t i = 0; i < 8; ++i) {
      EXPECT_EQ(injector_.record(i).busy, 0u) << i;
      EXPECT_EQ(injector_.record(i).run.inside, uint32_t{kNotInside}) << i;
    }
  }

  SelfHosted injector_;
};

}  // namespace perfd::agent

#endif  // TESTS_INTEGRATION_SHADOW_RECOVERY_FIXTURE_H_
