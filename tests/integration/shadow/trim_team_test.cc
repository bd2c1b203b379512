// A narrowed shadow of a team: nobody goes on while memory is marked.
#include <array>
#include <atomic>
#include <thread>

#include "tests/integration/shadow/trim_fixture.h"

namespace perfd::agent {
namespace {

// Two threads that enter the loop once each, and meet.
class TrimTeam {
 public:
  explicit TrimTeam(std::array<std::vector<double>, 2>& arrays) {
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

TEST_F(TrimTest, MembersWaitWhileTheAgentThinks) {
  const Ballast ballast;
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  std::array<std::vector<double>, 2> arrays = {Ramp(100), Ramp(100)};
  ShadowPlan& plan = Plan(injector, site, ballast, {{ballast.At(2), 20 * kMb}});
  plan.team = 2;
  plan.gather_ns = 1'000'000'000;
  plan.agent_wait_ns = 5'000'000'000;
  plan.trim.answer = 0;
  TrimTeam team(arrays);
  injector.Arm(site);
  const std::vector<std::string> before = ballast.Mappings();
  team.Go();
  if (!LeaderAsks(plan)) {
    team.Join();
    FAIL() << "the two threads did not meet: the machine is too busy";
  }
  usleep(50'000);
  EXPECT_FALSE(team.AnyLeft());
  EXPECT_FALSE(AnyDontFork()) << "nothing is marked before the answer";
  Answer(plan, kTrimGo);
  EXPECT_EQ(team.Join(), 2 * 5050.0);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeDone);
  EXPECT_EQ(injector.child().fault.address, ballast.At(20));
  EXPECT_EQ(ballast.Mappings(), before);
}

// A member stays some three seconds; an answer after that finds it gone, or about to go.
TEST_F(TrimTest, NoMarksOnceAMemberMayGoOn) {
  const Ballast ballast;
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  std::array<std::vector<double>, 2> arrays = {Ramp(100), Ramp(100)};
  ShadowPlan& plan = Plan(injector, site, ballast, {{ballast.At(2), 20 * kMb}});
  plan.team = 2;
  plan.shadow_ns = 1'000'000;
  plan.gather_ns = 1'000'000'000;
  plan.retries = 100;
  plan.agent_wait_ns = 8'000'000'000;
  plan.trim.answer = 0;
  TrimTeam team(arrays);
  injector.Arm(site);
  const std::vector<std::string> before = ballast.Mappings();
  team.Go();
  if (!LeaderAsks(plan)) {
    team.Join();
    FAIL() << "the two threads did not meet: the machine is too busy";
  }
  for (int i = 0; i < 6000 && !team.AnyLeft(); ++i) usleep(1000);
  EXPECT_TRUE(team.AnyLeft());
  Answer(plan, kTrimGo);
  EXPECT_EQ(team.Join(), 2 * 5050.0);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeNotTrimmed);
  EXPECT_EQ(injector.site(site).last_error, kTrimTooLate);
  EXPECT_EQ(injector.site(site).shadows, 0u);
  EXPECT_EQ(ballast.Mappings(), before);
}

// While memory is marked nobody goes on, however late it is.
TEST_F(TrimTest, MembersStayAsLongAsThereAreMarks) {
  const Ballast ballast;
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  std::array<std::vector<double>, 2> arrays = {Ramp(100), Ramp(100)};
  ShadowPlan& plan = Plan(injector, site, ballast, {});
  plan.team = 2;
  plan.shadow_ns = 1'000'000;
  plan.gather_ns = 1'000'000'000;
  plan.retries = 100;
  plan.agent_wait_ns = 8'000'000'000;
  plan.trim.answer = 0;
  TrimTeam team(arrays);
  injector.Arm(site);
  team.Go();
  if (!LeaderAsks(plan)) {
    team.Join();
    FAIL() << "the two threads did not meet: the machine is too busy";
  }
  __atomic_store_n(&plan.trim.marked, uint32_t{1}, __ATOMIC_SEQ_CST);
  usleep(3'500'000);  // a member's own time ends after 3 s
  EXPECT_FALSE(team.AnyLeft());
  __atomic_store_n(&plan.trim.marked, uint32_t{0}, __ATOMIC_SEQ_CST);
  for (int i = 0; i < 2000 && !team.AnyLeft(); ++i) usleep(1000);
  EXPECT_TRUE(team.AnyLeft());
  Answer(plan, kTrimNo);
  EXPECT_EQ(team.Join(), 2 * 5050.0);
  EXPECT_EQ(injector.site(site).last_error, kTrimRefused);
}

}  // namespace
}  // namespace perfd::agent
