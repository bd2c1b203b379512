// Forks that leave memory out, in the test's own process: what the copy lacks, what the rank keeps, and that no mark is ever left.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "agent/shadow/forking/cgroup_memory.h"
#include "agent/shadow/forking/memory_areas.h"
#include "tests/integration/shadow/payload_fixture.h"

namespace perfd {
namespace {

constexpr uint64_t kMb = 1 << 20;

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

bool AnyDontFork() {
  const auto areas = ReadMemoryAreas(getpid());
  for (const MemoryArea& area : *areas) {
    if (area.map.path.empty() && area.HasFlag("dc")) return true;
  }
  return false;
}

// Code that reads a word there; its "iterations" are the lowest byte.
uint64_t Look(SelfHosted& lab, uint64_t address) {
  std::vector<uint8_t> code = {0x48, 0xb8};  // mov $address,%rax
  for (int i = 0; i < 8; ++i) code.push_back(static_cast<uint8_t>(address >> 8 * i));
  // movzbl (%rax),%eax; mov %rax,%gs:0
  for (int byte : {0x0f, 0xb6, 0x00, 0x65, 0x48, 0x89, 0x04, 0x25, 0, 0, 0, 0})
    code.push_back(static_cast<uint8_t>(byte));
  return lab.Raw(code);
}

// A program's own child has all of the memory.
int ChildSees(const Ballast& ballast) {
  const pid_t child = fork();
  if (child == 0) _exit(ballast.Intact() ? 3 : 4);
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void Answer(ShadowPlan& plan, uint32_t answer) {
  __atomic_store_n(&plan.narrow.answer, NarrowAnswer(plan.generation, answer), __ATOMIC_SEQ_CST);
}

// Once both threads are there.
bool LeaderAsks(const ShadowPlan& plan) {
  for (int i = 0; i < 50'000; ++i) {
    if (__atomic_load_n(&plan.narrow.waiting, __ATOMIC_SEQ_CST) != 0) return true;
    usleep(100);
  }
  return false;
}

class NarrowTest : public PayloadTest {
 protected:
  void SetUp() override {
    PayloadTest::SetUp();
    signal(SIGCHLD, SIG_DFL);  // the tests have children of their own
  }
  // A shadow of two looks, at 1 MB (kept) and 20 MB, without what `ranges` says.
  ShadowPlan& Plan(SelfHosted& lab, uint32_t site, const Ballast& ballast,
                   const std::vector<NarrowRange>& ranges) {
    ShadowPlan& plan = lab.Plan(
        site, 1, {{Look(lab, ballast.At(1)), 0, 0, 0, 0}, {Look(lab, ballast.At(20)), 0, 0, 0, 0}});
    plan.flags |= kPlanNarrow;
    plan.agent_wait_ns = 20'000'000;
    plan.narrow.answer = NarrowAnswer(plan.generation, kNarrowGo);
    plan.narrow.count = static_cast<uint32_t>(ranges.size());
    std::copy(ranges.begin(), ranges.end(), plan.narrow.ranges);
    return plan;
  }
  void Run(SelfHosted& lab, uint32_t site) {
    lab.Arm(site);
    std::vector<double> v = Ramp(100);
    EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
  }
};

TEST_F(NarrowTest, TheShadowLacksItAndTheRankDoesNot) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  ShadowPlan& plan =
      Plan(lab, site, ballast, {{ballast.At(2), 20 * kMb}, {ballast.At(30), 34 * kMb}});
  const std::vector<std::string> before = ballast.Mappings();
  Run(lab, site);
  EXPECT_EQ(ballast.Mappings(), before) << "cut mappings have to grow together again";
  EXPECT_FALSE(AnyDontFork());
  ASSERT_EQ(lab.site(site).last_outcome, kOutcomeDone);
  EXPECT_EQ(plan.narrow.waiting, 1u);
  EXPECT_EQ(plan.narrow.marked, 0u);
  EXPECT_EQ(plan.narrow.stuck, 0u);
  EXPECT_EQ(lab.result(0, 0).status, uint32_t{kRunOk});
  EXPECT_EQ(lab.result(0, 0).iterations, 7u);
  EXPECT_EQ(lab.result(1, 0).status, uint32_t{kRunFaulted});
  EXPECT_EQ(lab.child().fault.address, ballast.At(20));
  EXPECT_TRUE(ballast.Intact());
  EXPECT_EQ(ChildSees(ballast), 3);
}

TEST_F(NarrowTest, AWholeForkHasItAll) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  Plan(lab, site, ballast, {{ballast.At(2), 20 * kMb}}).flags &= ~uint32_t{kPlanNarrow};
  Run(lab, site);
  EXPECT_EQ(lab.result(1, 0).iterations, 7u);
  EXPECT_EQ(lab.plan().narrow.waiting, 0u);
}

TEST_F(NarrowTest, ManyTimesAndTheMapIsTheSame) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  std::vector<NarrowRange> ranges;
  for (uint64_t i = 0; i < 16; ++i) ranges.push_back({ballast.At(2 + 4 * i % 62), 2 * kMb});
  const std::vector<std::string> before = ballast.Mappings();
  for (int i = 0; i < 20; ++i) {
    Plan(lab, site, ballast, ranges);
    lab.plan().run_count = 1;
    Run(lab, site);
    ASSERT_EQ(lab.site(site).last_outcome, kOutcomeDone);
  }
  EXPECT_EQ(ballast.Mappings(), before);
  EXPECT_EQ(ChildSees(ballast), 3);
}

TEST_F(NarrowTest, WithoutTheAgentNothingIsForked) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  const std::vector<std::string> before = ballast.Mappings();
  struct Case {
    uint32_t answer;
    int32_t step;
  };
  for (const Case& c : {Case{0, kNarrowNoAnswer}, Case{kNarrowNo, kNarrowRefused}}) {
    ShadowPlan& plan = Plan(lab, site, ballast, {{ballast.At(2), 20 * kMb}});
    plan.narrow.answer = c.answer == kNarrowNo ? NarrowAnswer(plan.generation, c.answer) : c.answer;
    Run(lab, site);
    EXPECT_EQ(lab.site(site).last_outcome, kOutcomeNotNarrowed);
    EXPECT_EQ(lab.site(site).last_error, c.step);
  }
  EXPECT_EQ(lab.site(site).shadows, 0u);
  EXPECT_EQ(ballast.Mappings(), before);
}

// To the plan before, that is: its ranges may be half written by now.
TEST_F(NarrowTest, AStaleAnswerIsNone) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  const std::vector<std::string> before = ballast.Mappings();
  ShadowPlan& plan = Plan(lab, site, ballast, {{ballast.At(2), 20 * kMb}});
  plan.narrow.answer = NarrowAnswer(plan.generation - 1, kNarrowGo);
  Run(lab, site);
  EXPECT_EQ(lab.site(site).last_outcome, kOutcomeNotNarrowed);
  EXPECT_EQ(lab.site(site).last_error, kNarrowNoAnswer);
  EXPECT_EQ(lab.site(site).shadows, 0u);
  EXPECT_EQ(ballast.Mappings(), before);
}

// The shadow's own buffers must not come to lie where the loop's arrays were.
TEST_F(NarrowTest, WhatIsLeftOutStaysEmpty) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  ShadowPlan& plan = Plan(lab, site, ballast, {{ballast.At(2), 20 * kMb}});
  plan.run_count = 0;
  for (uint64_t mb : {1, 3, 6, 9, 12, 15, 18, 21})
    plan.runs[plan.run_count++] = {Look(lab, ballast.At(mb)), 0, kRunCold | kRunRestore | kRunLearn,
                                   0, 0};
  plan.evict_bytes = 8 * kMb;
  plan.restores[plan.restore_count++] = {ballast.At(24), 8 * kMb, kSharedOut, 0};
  Run(lab, site);
  EXPECT_EQ(lab.result(0, 0).status, uint32_t{kRunOk});
  for (uint32_t run = 1; run < 8; ++run)
    EXPECT_EQ(lab.result(run, 0).status, uint32_t{kRunFaulted}) << run;
  EXPECT_EQ(lab.child().fault.address, ballast.At(3));
  EXPECT_TRUE(ballast.Intact());
}

// The team stands still from the question on, not from the fork.
TEST_F(NarrowTest, TheAnswerIsPartOfThePause) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  ShadowPlan& plan = Plan(lab, site, ballast, {{ballast.At(2), 20 * kMb}});
  plan.shadow_ns = 300'000'000;
  plan.agent_wait_ns = 2'000'000'000;
  plan.narrow.answer = 0;
  plan.runs[0].copy = lab.Raw({0xeb, 0xfe});  // for ever
  std::thread agent([&] {
    LeaderAsks(plan);
    usleep(200'000);
    Answer(plan, kNarrowGo);
  });
  const uint64_t begin = ReadTicks();
  usleep(10'000);
  const uint64_t per_10_ms = ReadTicks() - begin;
  Run(lab, site);
  agent.join();
  const uint32_t outcome = lab.site(site).last_outcome;
  EXPECT_TRUE(outcome == kOutcomeWatchdog || outcome == kOutcomeKilled) << outcome;
  EXPECT_LT(lab.site(site).pause_ticks, 40 * per_10_ms) << "200 + 7/8 of 300 ms if not";
}

TEST_F(NarrowTest, WhatTheKernelRefusesUndoesTheRest) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  // The last range goes on into a hole behind the memory.
  auto* hole = static_cast<char*>(
      mmap(nullptr, 8 * kMb, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(hole, MAP_FAILED);
  munmap(hole + 4 * kMb, 2 * kMb);
  const std::vector<std::string> before = ballast.Mappings();
  Plan(lab, site, ballast,
       {{ballast.At(2), 20 * kMb}, {reinterpret_cast<uint64_t>(hole), 8 * kMb}});
  Run(lab, site);
  EXPECT_EQ(lab.site(site).last_outcome, kOutcomeNotNarrowed);
  EXPECT_EQ(lab.site(site).last_error, kNarrowNotMarked);
  EXPECT_EQ(lab.site(site).shadows, 0u);
  EXPECT_EQ(ballast.Mappings(), before);
  EXPECT_FALSE(AnyDontFork());
  EXPECT_EQ(lab.plan().narrow.marked, 0u);
  munmap(hole, 8 * kMb);
}

// As when it cannot be forked at all: the marks do not depend on what becomes of the copy.
TEST_F(NarrowTest, AShadowThatDoesNotStartLeavesNoMark) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  const std::vector<std::string> before = ballast.Mappings();
  Plan(lab, site, ballast, {{ballast.At(2), 20 * kMb}}).run_count = kMaxRuns + 1;
  Run(lab, site);
  EXPECT_EQ(lab.site(site).last_outcome, kOutcomeSetupFailed);
  EXPECT_EQ(ballast.Mappings(), before);
  EXPECT_FALSE(AnyDontFork());
}

// Two threads that enter the loop once each, and meet.
class NarrowTeam {
 public:
  explicit NarrowTeam(std::array<std::vector<double>, 2>& arrays) {
    for (size_t i = 0; i < 2; ++i) {
      threads_[i] = std::thread([this, i, &arrays] {
        while (!go_) std::this_thread::yield();
        sums_[i] = loop_sum(arrays[i].data(), static_cast<int64_t>(arrays[i].size()));
        left_[i] = true;
      });
    }
  }
  void Go() { go_ = true; }
  bool AnyLeft() const { return left_[0] || left_[1]; }
  double Join() {
    for (std::thread& thread : threads_) thread.join();
    return sums_[0] + sums_[1];
  }

 private:
  std::atomic<bool> go_ = false;
  std::array<std::atomic<bool>, 2> left_ = {false, false};
  std::array<double, 2> sums_{};
  std::array<std::thread, 2> threads_;
};

TEST_F(NarrowTest, MembersWaitWhileTheAgentThinks) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  std::array<std::vector<double>, 2> arrays = {Ramp(100), Ramp(100)};
  ShadowPlan& plan = Plan(lab, site, ballast, {{ballast.At(2), 20 * kMb}});
  plan.team = 2;
  plan.gather_ns = 1'000'000'000;
  plan.agent_wait_ns = 5'000'000'000;
  plan.narrow.answer = 0;
  NarrowTeam team(arrays);
  lab.Arm(site);
  const std::vector<std::string> before = ballast.Mappings();
  team.Go();
  if (!LeaderAsks(plan)) {
    team.Join();
    FAIL() << "the two threads did not meet: the machine is too busy";
  }
  usleep(50'000);
  EXPECT_FALSE(team.AnyLeft());
  EXPECT_FALSE(AnyDontFork()) << "nothing is marked before the answer";
  Answer(plan, kNarrowGo);
  EXPECT_EQ(team.Join(), 2 * 5050.0);
  EXPECT_EQ(lab.site(site).last_outcome, kOutcomeDone);
  EXPECT_EQ(lab.child().fault.address, ballast.At(20));
  EXPECT_EQ(ballast.Mappings(), before);
}

// A member stays some three seconds; an answer after that finds it gone, or about to go.
TEST_F(NarrowTest, NoMarksOnceAMemberMayGoOn) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  std::array<std::vector<double>, 2> arrays = {Ramp(100), Ramp(100)};
  ShadowPlan& plan = Plan(lab, site, ballast, {{ballast.At(2), 20 * kMb}});
  plan.team = 2;
  plan.shadow_ns = 1'000'000;
  plan.gather_ns = 1'000'000'000;
  plan.retries = 100;
  plan.agent_wait_ns = 8'000'000'000;
  plan.narrow.answer = 0;
  NarrowTeam team(arrays);
  lab.Arm(site);
  const std::vector<std::string> before = ballast.Mappings();
  team.Go();
  if (!LeaderAsks(plan)) {
    team.Join();
    FAIL() << "the two threads did not meet: the machine is too busy";
  }
  for (int i = 0; i < 6000 && !team.AnyLeft(); ++i) usleep(1000);
  EXPECT_TRUE(team.AnyLeft());
  Answer(plan, kNarrowGo);
  EXPECT_EQ(team.Join(), 2 * 5050.0);
  EXPECT_EQ(lab.site(site).last_outcome, kOutcomeNotNarrowed);
  EXPECT_EQ(lab.site(site).last_error, kNarrowTooLate);
  EXPECT_EQ(lab.site(site).shadows, 0u);
  EXPECT_EQ(ballast.Mappings(), before);
}

// While memory is marked nobody goes on, however late it is.
TEST_F(NarrowTest, MembersStayAsLongAsThereAreMarks) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  std::array<std::vector<double>, 2> arrays = {Ramp(100), Ramp(100)};
  ShadowPlan& plan = Plan(lab, site, ballast, {});
  plan.team = 2;
  plan.shadow_ns = 1'000'000;
  plan.gather_ns = 1'000'000'000;
  plan.retries = 100;
  plan.agent_wait_ns = 8'000'000'000;
  plan.narrow.answer = 0;
  NarrowTeam team(arrays);
  lab.Arm(site);
  team.Go();
  if (!LeaderAsks(plan)) {
    team.Join();
    FAIL() << "the two threads did not meet: the machine is too busy";
  }
  __atomic_store_n(&plan.narrow.marked, uint32_t{1}, __ATOMIC_SEQ_CST);
  usleep(3'500'000);  // a member's own time ends after 3 s
  EXPECT_FALSE(team.AnyLeft());
  __atomic_store_n(&plan.narrow.marked, uint32_t{0}, __ATOMIC_SEQ_CST);
  for (int i = 0; i < 2000 && !team.AnyLeft(); ++i) usleep(1000);
  EXPECT_TRUE(team.AnyLeft());
  Answer(plan, kNarrowNo);
  EXPECT_EQ(team.Join(), 2 * 5050.0);
  EXPECT_EQ(lab.site(site).last_error, kNarrowRefused);
}

// A real control group of version 1 or 2, with a process in it.
TEST(CgroupLimitTest, OfARealGroupIsFound) {
  const bool v1 = std::filesystem::exists("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  const std::string group =
      absl::StrCat(v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup", "/perfd-test-", getpid());
  std::error_code error;
  if (geteuid() != 0 || !std::filesystem::create_directory(group, error))
    GTEST_SKIP() << "SKIPPED: no control group can be made here";
  constexpr uint64_t kLimit = 48 * kMb;
  std::ofstream(group + (v1 ? "/memory.limit_in_bytes" : "/memory.max")) << kLimit;
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  std::ofstream(group + "/cgroup.procs") << child;
  const bool limited =
      std::filesystem::exists(group + (v1 ? "/memory.limit_in_bytes" : "/memory.max"));
  const CgroupMemory memory = ReadCgroupMemory(child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (int i = 0; i < 200 && !std::filesystem::remove(group, error); ++i) usleep(10'000);
  if (!limited) GTEST_SKIP() << "SKIPPED: no memory controller";
  EXPECT_EQ(memory.limit.value_or(0), kLimit);
  EXPECT_LT(memory.current, kLimit);
}

}  // namespace
}  // namespace perfd
