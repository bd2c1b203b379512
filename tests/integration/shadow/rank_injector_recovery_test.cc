// Recovery mode on a real process: short instances of a loop that stores nothing; the process must not notice.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <thread>

#include "agent/attach/memory.h"
#include "agent/attach/thread_status.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/protocol.h"
#include "agent/shadow/region_injection.h"
#include "tests/integration/shadow/injector_fixture.h"

namespace perfd::agent {
namespace {

constexpr int64_t kN = 100;  // some 200 ns
const char* const kPuppet = PERFD_RECOVERY_PUPPET;

class InjectorRecoveryTest : public RankInjectorTest {
 protected:
  InjectorRecoveryTest() { options_.recovery = true; }

  static std::string Undisturbed(int threads, int64_t passes) {
    PuppetRank puppet({absl::StrCat(threads), absl::StrCat(kN), absl::StrCat(passes)}, kPuppet);
    return puppet.Stop().checksum;
  }
  static RecoveryRequest Request(std::vector<int32_t> round, int32_t runs) {
    RecoveryRequest request;
    request.round = std::move(round);
    request.runs = runs;
    request.most_added_ns = 1000 * kMs;
    request.timeout_ns = 5000 * kMs;
    return request;
  }
  static uint64_t Median(std::vector<uint64_t> values) { return Quantile(std::move(values), 2); }
  static uint64_t Fast(std::vector<uint64_t> values) { return Quantile(std::move(values), 20); }
  static uint64_t Quantile(std::vector<uint64_t> values, size_t of) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / of];
  }
};

TEST_F(InjectorRecoveryTest, RunsCopiesInTheRankAndLeavesNothing) {
  PuppetRank puppet({"2", absl::StrCat(kN), "0"}, kPuppet);
  const std::vector<uint8_t> text = puppet.Text();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // its threads come up
  const std::vector<std::string> maps = puppet.Maps();
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  auto installed = (*injector)->Install({puppet.MakeLoop({"LS", "FP", "DL1"})});
  ASSERT_TRUE(installed.ok()) << installed.status();
  const InstalledLoop& loop = installed->at(0);
  ASSERT_TRUE(loop.status.ok()) << loop.status;
  ASSERT_TRUE(loop.in_situ.ok()) << loop.in_situ;
  const std::vector<int32_t> round = {kNoCopy, 0, 3, 0, 4, 0, 5, 0, 1};
  for (size_t i = 0; i < loop.copies.size(); ++i) EXPECT_TRUE(loop.in_situ_copies[i]) << i;
  auto answer = (*injector)->Recover(Request(round, 4000));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->enough);
  EXPECT_EQ(answer->runs.size(), 4000u);
  EXPECT_GT(answer->added_ns, 0);
  std::map<int32_t, std::vector<uint64_t>> cycles;
  std::vector<uint64_t> alone;
  for (const RecoveryRun& run : answer->runs) {
    const int32_t copy = round[static_cast<size_t>(run.step)];
    cycles[copy].push_back(run.cycles);
    if (copy == kNoCopy && run.original > 0) alone.push_back(run.original);
    EXPECT_EQ(run.iterations, copy == 1 ? static_cast<uint64_t>(kN) : 0u);
  }
  printf("fast LS %lu, REF %lu\n", Fast(cycles[3]), Fast(cycles[0]));
  printf("probe %lu, REF %lu, LS %lu, FP %lu, DL1 %lu, the loop itself %lu ticks; %ld ns a run\n",
         Median(cycles[kNoCopy]), Median(cycles[0]), Median(cycles[3]), Median(cycles[4]),
         Median(cycles[5]), Median(alone), answer->added_ns / 2000);
  // A sum of dependent additions: without them it is far faster, where nobody else uses the core meanwhile.
  EXPECT_LT(Fast(cycles[3]), Fast(cycles[0]));
  EXPECT_EQ((*injector)->cost().recoveries, 4000u);
  EXPECT_EQ((*injector)->cost().shadows, 0u);
  ASSERT_TRUE((*injector)->Uninstall().ok());
  EXPECT_EQ(puppet.Text(), text);
  EXPECT_EQ(puppet.Maps(), maps);
  std::vector<std::string> actions;
  for (const AuditEntry& entry : audit_) actions.push_back(entry.action);
  EXPECT_THAT(actions, ::testing::Contains("recovery"));
  EXPECT_THAT(actions, ::testing::Not(::testing::Contains("shadow")));
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.status, 0);
  EXPECT_GT(end.passes, 4000);
  EXPECT_EQ(end.checksum, Undisturbed(2, end.passes));
}

TEST_F(InjectorRecoveryTest, ShadowsAndRecoveriesTakeTurns) {
  PuppetRank puppet({"1", absl::StrCat(kN), "0"}, kPuppet);
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({"LS"})}).ok());
  for (int i = 0; i < 5; ++i) {
    auto recovered = (*injector)->Recover(Request({kNoCopy, 0, 3}, 500));
    ASSERT_TRUE(recovered.ok()) << recovered.status();
    auto answer =
        Shadow(**injector, RankInjectorTest::Request({{.variant = 0}, {.variant = 1}}, 1));
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->runs.at(1).iterations, static_cast<uint64_t>(kN));
    EXPECT_TRUE((*injector)->TimeLive(0, 10, 1000 * kMs).ok());
  }
  ASSERT_TRUE((*injector)->Uninstall().ok());
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, Undisturbed(1, end.passes));
}

TEST_F(InjectorRecoveryTest, WithoutTheOptInNothingRuns) {
  options_.recovery = false;
  PuppetRank puppet({"1", absl::StrCat(kN), "0"}, kPuppet);
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  auto installed = (*injector)->Install({puppet.MakeLoop({})});
  ASSERT_TRUE(installed.ok());
  EXPECT_THAT(std::string(installed->at(0).in_situ.message()),
              ::testing::HasSubstr("--allow-recovery"));
  auto answer = (*injector)->Recover(Request({0}, 10));
  EXPECT_TRUE(absl::IsPermissionDenied(answer.status())) << answer.status();
  EXPECT_EQ((*injector)->cost().recoveries, 0u);
  ASSERT_TRUE((*injector)->Uninstall().ok());
}

TEST_F(InjectorRecoveryTest, ALoopThatStoresIsRefused) {
  PuppetRank puppet({"1", absl::StrCat(kN), "0"}, kPuppet);
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  auto installed = (*injector)->Install({puppet.MakeLoop({}, 1)});
  ASSERT_TRUE(installed.ok());
  ASSERT_TRUE(installed->at(0).status.ok()) << installed->at(0).status;
  EXPECT_THAT(std::string(installed->at(0).in_situ.message()), ::testing::HasSubstr("it stores"));
  EXPECT_FALSE((*injector)->Recover(Request({0}, 10)).ok());
  ASSERT_TRUE((*injector)->Uninstall().ok());
}

// Every instance is too long to run in place, so that it would last until its time is up.
TEST_F(InjectorRecoveryTest, EndsWhenItIsCancelled) {
  bool cancelled = false;
  options_.cancelled = [&] { return cancelled; };
  PuppetRank puppet({"1", "300000", "0"}, kPuppet);
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
  cancelled = true;
  const auto begin = std::chrono::steady_clock::now();
  RecoveryRequest request = Request({0}, 8192);
  request.timeout_ns = 30'000 * kMs;
  EXPECT_FALSE((*injector)->Recover(request).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  ASSERT_TRUE((*injector)->Uninstall().ok());
}

// A shadow that could not be ended still shares memory with the rank.
TEST_F(InjectorRecoveryTest, NotWhileAShadowIsLeftOver) {
  PuppetRank puppet({"1", absl::StrCat(kN), "0"}, kPuppet);
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
  const auto injection = ReadInjectionFromRank(puppet.pid());
  ASSERT_TRUE(injection.ok()) << injection.status();
  const auto memory = Memory::Open(puppet.pid(), injection->start_ticks);
  ASSERT_TRUE(memory.ok());
  const uint64_t at = injection->region.start + offsetof(RegionHeader, orphan);
  const auto write = [&](uint8_t number) { return memory->Write(at, std::vector{number}).ok(); };
  ASSERT_TRUE(write(17));
  const auto answer = (*injector)->Recover(Request({0}, 10));
  EXPECT_TRUE(absl::IsFailedPrecondition(answer.status())) << answer.status();
  ASSERT_TRUE(write(0));
  EXPECT_TRUE((*injector)->Recover(Request({0}, 10)).ok());
  ASSERT_TRUE((*injector)->Uninstall().ok());
}

TEST_F(InjectorRecoveryTest, TheRankDiesMeanwhile) {
  auto puppet =
      std::make_unique<PuppetRank>(std::vector<std::string>{"1", absl::StrCat(kN), "0"}, kPuppet);
  auto injector = RankInjector::Open(puppet->rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet->MakeLoop({})}).ok());
  puppet.reset();
  EXPECT_FALSE((*injector)->Recover(Request({0}, 10)).ok());
  (*injector)->Uninstall().IgnoreError();
}

// A thread whose handler jumps out of its copy, and which enters no loop any more (recovery_puppet.c).
const std::vector<std::string> kJump = {"1", absl::StrCat(kN), "0", "jump"};
const char* const kOwnGs = "7654321000";

bool HasBlocked(const PuppetRank& puppet, int signal) {
  const auto status = ReadThreadStatus(puppet.pid(), puppet.pid());
  return status.ok() && (status->blocked >> (signal - 1) & 1) != 0;
}
// And keeps it so: stops and runs block it, too, for a moment.
bool WillHaveBlocked(const PuppetRank& puppet, int signal) {
  int probes = 0;
  for (int i = 0; i < 10'000 && probes < 50; ++i) {
    probes = HasBlocked(puppet, signal) ? probes + 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return probes == 50;
}

TEST_F(InjectorRecoveryTest, WhoJumpsOutAndEntersNoMoreIsGivenEverythingBack) {
  PuppetRank puppet(kJump, kPuppet);
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
  RecoveryRequest request = Request({0}, 8192);
  request.timeout_ns = 500 * kMs;
  const auto answer = (*injector)->Recover(request);
  // The jump may come with the first run already: then there is nothing to tell.
  EXPECT_TRUE(answer.ok() || absl::IsDeadlineExceeded(answer.status())) << answer.status();
  EXPECT_FALSE(HasBlocked(puppet, SIGTERM)) << "at once, not at the end";
  const auto again = (*injector)->Recover(request);
  EXPECT_TRUE(absl::IsDeadlineExceeded(again.status()))
      << "nobody is waited for: " << again.status();
  ASSERT_TRUE((*injector)->Uninstall().ok());
  const PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.passes, 1) << "it has waited in vain";
  EXPECT_EQ(end.checksum, kOwnGs);
}

TEST_F(InjectorRecoveryTest, WhoJumpsOutAndEndsIsForgotten) {
  PuppetRank puppet({"1", absl::StrCat(kN), "0", "end"}, kPuppet);
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
  const int threads = static_cast<int>(ProcFs().Threads(puppet.pid())->size());
  RecoveryRequest request = Request({0}, 100);
  auto answer = (*injector)->Recover(request);
  for (int i = 0; i < 200 && ProcFs().Threads(puppet.pid())->size() > 1; ++i)
    answer = (*injector)->Recover(request);
  EXPECT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(threads, 2);
  EXPECT_EQ(ProcFs().Threads(puppet.pid())->size(), 1u) << "it has not jumped";
  answer = (*injector)->Recover(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->runs.size(), 100u);
  EXPECT_TRUE(Shadow(**injector, RankInjectorTest::Request({{.variant = 0}}, 1)).ok());
  ASSERT_TRUE((*injector)->Uninstall().ok());
  EXPECT_EQ(puppet.Stop().status, 0);
}

TEST_F(InjectorRecoveryTest, WhatADeadAgentTookAlongIsHealed) {
  PuppetRank puppet(kJump, kPuppet);
  const std::vector<uint8_t> text = puppet.Text();
  const pid_t agent = fork();
  if (agent == 0) {
    auto tracer = Tracer::Start({PERFD_TRACER, {}});
    InjectorOptions own = options_;
    own.tracer = tracer->get();
    own.audit = nullptr;
    auto injector = RankInjector::Open(puppet.rank(), own);
    if (!injector.ok() || !(*injector)->Install({puppet.MakeLoop({})}).ok()) _exit(2);
    RecoveryRequest request = Request({0}, 8192);
    request.timeout_ns = 30'000 * kMs;
    (*injector)->Recover(request).status().IgnoreError();
    _exit(3);
  }
  EXPECT_TRUE(WillHaveBlocked(puppet, SIGTERM));
  kill(agent, SIGKILL);
  int status = 0;
  waitpid(agent, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the agent ended by itself: " << WEXITSTATUS(status);
  EXPECT_TRUE(HasBlocked(puppet, SIGTERM));
  const HealReport report = HealRank(puppet.pid(), options_);
  EXPECT_TRUE(report.status.ok()) << report.status;
  EXPECT_EQ(puppet.Text(), text);
  const PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.passes, 1) << "it has waited in vain";
  EXPECT_EQ(end.checksum, kOwnGs);
}

}  // namespace
}  // namespace perfd::agent
