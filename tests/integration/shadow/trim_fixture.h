// What the tests of narrowed shadows share: memory to leave out, the agent's answer to a leader, a narrowed plan.
#ifndef TESTS_INTEGRATION_SHADOW_TRIM_FIXTURE_H_
#define TESTS_INTEGRATION_SHADOW_TRIM_FIXTURE_H_

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "agent/shadow/forking/memory_areas.h"
#include "tests/integration/shadow/payload_fixture.h"

namespace perfd::agent {

inline constexpr uint64_t kMb = 1 << 20;

// Private memory of 64 MB, in 4K pages, on 2 MB.
class Ballast {
 public:
  static constexpr uint64_t kBytes = 64 * kMb;
  Ballast() {
    mapped_ =
        mmap(nullptr, kBytes + 2 * kMb, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) abort();
    low_ = (reinterpret_cast<uint64_t>(mapped_) + 2 * kMb - 1) & ~(2 * kMb - 1);
    madvise(mapped_, kBytes + 2 * kMb, MADV_NOHUGEPAGE);
    memset(reinterpret_cast<void*>(low_), 7, kBytes);
  }
  ~Ballast() { munmap(mapped_, kBytes + 2 * kMb); }
  Ballast(const Ballast&) = delete;
  Ballast& operator=(const Ballast&) = delete;
  uint64_t At(uint64_t mb) const { return low_ + mb * kMb; }
  // Its mapping, or the pieces of it, with their flags; "sd" (written to since somebody asked) comes and goes.
  std::vector<std::string> Mappings() const {
    std::vector<std::string> lines;
    const auto areas = ReadMemoryAreas(getpid());
    if (!areas.ok()) abort();
    for (const MemoryArea& area : *areas) {
      if (area.map.end <= low_ || area.map.start >= low_ + kBytes) continue;
      lines.push_back(absl::StrCat(area.map.start, "-", area.map.end));
      for (const std::string& flag : area.flags) {
        if (flag != "sd") absl::StrAppend(&lines.back(), " ", flag);
      }
    }
    return lines;
  }
  bool Intact() const {
    for (uint64_t at = low_; at < low_ + kBytes; at += 4096) {
      if (*reinterpret_cast<volatile uint8_t*>(at) != 7) return false;
    }
    return true;
  }

 private:
  void* mapped_;
  uint64_t low_;
};

inline bool AnyDontFork() {
  const auto areas = ReadMemoryAreas(getpid());
  for (const MemoryArea& area : *areas) {
    if (area.map.path.empty() && area.HasFlag("dc")) return true;
  }
  return false;
}

// Code that reads a word there; its "iterations" are the lowest byte.
inline uint64_t Probe(SelfHosted& injector, uint64_t address) {
  std::vector<uint8_t> code = {0x48, 0xb8};  // mov $address,%rax
  for (int i = 0; i < 8; ++i) code.push_back(static_cast<uint8_t>(address >> 8 * i));
  // movzbl (%rax),%eax; mov %rax,%gs:0
  for (int byte : {0x0f, 0xb6, 0x00, 0x65, 0x48, 0x89, 0x04, 0x25, 0, 0, 0, 0})
    code.push_back(static_cast<uint8_t>(byte));
  return injector.Raw(code);
}

// A program's own child has all of the memory.
inline int ChildSees(const Ballast& ballast) {
  const pid_t child = fork();
  if (child == 0) _exit(ballast.Intact() ? 3 : 4);
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

inline void Answer(ShadowPlan& plan, uint32_t answer) {
  __atomic_store_n(&plan.trim.answer, TrimAnswer(plan.generation, answer), __ATOMIC_SEQ_CST);
}

// Once both threads are there.
inline bool LeaderAsks(const ShadowPlan& plan) {
  for (int i = 0; i < 50'000; ++i) {
    if (__atomic_load_n(&plan.trim.waiting, __ATOMIC_SEQ_CST) != 0) return true;
    usleep(100);
  }
  return false;
}

class TrimTest : public PayloadTest {
 protected:
  void SetUp() override {
    PayloadTest::SetUp();
    signal(SIGCHLD, SIG_DFL);  // the tests have children of their own
  }
  // A shadow of two looks, at 1 MB (kept) and 20 MB, without what `ranges` says.
  ShadowPlan& Plan(SelfHosted& injector, uint32_t site, const Ballast& ballast,
                   const std::vector<TrimRange>& ranges) {
    ShadowPlan& plan = injector.Plan(site, 1,
                                     {{Probe(injector, ballast.At(1)), 0, 0, 0, 0},
                                      {Probe(injector, ballast.At(20)), 0, 0, 0, 0}});
    plan.flags |= kPlanTrim;
    plan.agent_wait_ns = 20'000'000;
    plan.trim.answer = TrimAnswer(plan.generation, kTrimGo);
    plan.trim.count = static_cast<uint32_t>(ranges.size());
    std::copy(ranges.begin(), ranges.end(), plan.trim.ranges);
    return plan;
  }
  void Run(SelfHosted& injector, uint32_t site) {
    injector.Arm(site);
    std::vector<double> v = Ramp(100);
    EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
  }
};

}  // namespace perfd::agent

#endif  // TESTS_INTEGRATION_SHADOW_TRIM_FIXTURE_H_
