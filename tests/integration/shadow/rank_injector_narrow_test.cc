// Shadows of a real process that leave memory out, while the process itself forks and looks whether all of it is there.
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "agent/shadow/forking/memory_areas.h"
#include "tests/integration/shadow/injector_fixture.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kN = 20000;
constexpr int kTrace = 2;

// Of everything but stacks and heap; "sd" (written to since somebody asked) comes and goes.
std::vector<std::string> Flags(pid_t pid) {
  std::vector<std::string> lines;
  const auto areas = ReadMemoryAreas(pid);
  for (const MemoryArea& area : *areas) {
    if (area.map.path == "[heap]" || area.map.path == "[stack]") continue;
    lines.push_back(absl::StrCat(absl::Hex(area.map.start), "-", absl::Hex(area.map.end)));
    for (const std::string& flag : area.flags) {
      if (flag != "sd") absl::StrAppend(&lines.back(), " ", flag);
    }
  }
  return lines;
}

Footprint FootprintOf(const ShadowAnswer& answer) {
  Footprint footprint;
  for (const std::vector<TraceRecord>& thread : answer.traces) {
    for (const TraceRecord& record : thread) {
      if (record.count > 0) footprint.ranges.push_back({record.lowest, record.highest + 8});
    }
  }
  return footprint;
}

class RankInjectorTrimTest : public RankInjectorTest {
 protected:
  void Open(const PuppetRank& puppet) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    auto injector = RankInjector::Open(puppet.rank(), options_);
    ASSERT_TRUE(injector.ok()) << injector.status();
    injector_ = *std::move(injector);
    auto installed = injector_->Install({puppet.MakeLoop({"LS"})});
    ASSERT_TRUE(installed.ok()) << installed.status();
    ASSERT_TRUE(installed->at(0).status.ok()) << installed->at(0).status;
  }
  // A whole shadow first: it tells what the loop touches.
  Footprint Probe(int team) {
    auto answer = Shadow(*injector_, Request({{.variant = 0}, {.variant = kTrace}}, team));
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok()) return {};
    whole_fork_ns_ = answer->fork_ns;
    return FootprintOf(*answer);
  }
  ShadowRequest Trim(const Footprint& footprint, int team) {
    ShadowRequest request = Request({{.variant = 0}, {.variant = 0}, {.variant = 1}}, team);
    request.footprint = footprint;
    return request;
  }

  std::unique_ptr<RankInjector> injector_;
  int64_t whole_fork_ns_ = 0;
};

TEST_F(RankInjectorTrimTest, ForksLessAndTheProcessNeverMissesIt) {
  PuppetRank puppet({"2", absl::StrCat(kN), "0", "big"});
  Open(puppet);
  const std::vector<std::string> flags = Flags(puppet.pid());
  const Footprint footprint = Probe(2);
  ASSERT_FALSE(footprint.ranges.empty());
  const ShadowPrediction whole = injector_->PredictShadow();
  const ShadowPrediction trimmed = injector_->PredictTrimmed(footprint, 2);
  ASSERT_TRUE(trimmed.status.ok()) << trimmed.status;
  EXPECT_LT(trimmed.fork_ns, whole.fork_ns / 2);
  EXPECT_LT(trimmed.later_fault_ns, whole.later_fault_ns / 2);
  int done = 0;
  for (int i = 0; i < 20; ++i) {
    auto answer = Shadow(*injector_, Trim(footprint, 2));
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_FALSE(answer->missed_memory);
    for (const ShadowRun& run : answer->runs) {
      EXPECT_TRUE(run.ok) << run.failure;
      if (run.run == 2) {
        EXPECT_EQ(run.iterations, static_cast<uint64_t>(kN));
      }
    }
    done += answer->outcome == "done" ? 1 : 0;
    EXPECT_EQ(Flags(puppet.pid()), flags);
  }
  EXPECT_GE(done, 15);
  EXPECT_TRUE(injector_->Uninstall().ok());
  const PuppetEnd end = puppet.Stop();
  EXPECT_TRUE(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0) << end.status;
  EXPECT_EQ(end.checksum, ChecksumOf(2, kN, end.passes));
}

// Nothing was traced yet: what the registers can reach is kept, and the trace is that of a whole shadow.
TEST_F(RankInjectorTrimTest, AGuessKeepsWhatTheRegistersReach) {
  PuppetRank puppet({"2", absl::StrCat(kN), "0", "big"});
  Open(puppet);
  const std::vector<std::string> flags = Flags(puppet.pid());
  Footprint guess;
  guess.around = 1 << 20;
  const ShadowPrediction whole = injector_->PredictShadow();
  const ShadowPrediction trimmed = injector_->PredictTrimmed(guess, 2);
  ASSERT_TRUE(trimmed.status.ok()) << trimmed.status;
  EXPECT_LT(trimmed.fork_ns, whole.fork_ns / 2);
  EXPECT_GT(trimmed.later_fault_ns, 0) << "what the pointers keep is paid for";
  ShadowRequest request = Request({{.variant = 0}, {.variant = 1}, {.variant = kTrace}}, 2);
  request.footprint = guess;
  auto answer = Shadow(*injector_, request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->missed_memory);
  for (const ShadowRun& run : answer->runs) EXPECT_TRUE(run.ok) << run.failure;
  EXPECT_EQ(Flags(puppet.pid()), flags);
  const Footprint traced = FootprintOf(*answer), alone = Probe(2);
  ASSERT_EQ(traced.ranges.size(), alone.ranges.size());
  for (size_t i = 0; i < traced.ranges.size(); ++i) {
    EXPECT_EQ(traced.ranges[i].start, alone.ranges[i].start);
    EXPECT_EQ(traced.ranges[i].end, alone.ranges[i].end);
  }
  EXPECT_LT(answer->fork_ns, whole_fork_ns_);
  EXPECT_TRUE(injector_->Uninstall().ok());
  const PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(2, kN, end.passes));
}

// The same while other threads could fork: it is not done, and says why.
TEST_F(RankInjectorTrimTest, ThreadsOutsideTheTeamForbidIt) {
  PuppetRank puppet({"2", absl::StrCat(kN), "0", "big"});
  Open(puppet);
  const Footprint footprint = Probe(2);
  EXPECT_THAT(std::string(injector_->PredictTrimmed(footprint, 1).status.message()),
              HasSubstr("1 of its 2 threads"));
  const auto answer = injector_->RunShadow(Trim(footprint, 1));
  EXPECT_TRUE(absl::IsAborted(answer.status())) << answer.status();
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("1 of its 2 threads"));
  EXPECT_TRUE(injector_->Uninstall().ok());
  EXPECT_EQ(WEXITSTATUS(puppet.Stop().status), 0);
}

// A footprint that is not the loop's: registers point elsewhere, so what they point to is kept, and nothing is missed.
TEST_F(RankInjectorTrimTest, WhatRegistersPointToIsKept) {
  PuppetRank puppet({"1", absl::StrCat(kN), "0", "big"});
  Open(puppet);
  const auto answer = Shadow(*injector_, Trim({{{0x1000, 0x2000}}, false}, 1));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->missed_memory);
  for (const ShadowRun& run : answer->runs) EXPECT_TRUE(run.ok) << run.failure;
  EXPECT_TRUE(injector_->Uninstall().ok());
  EXPECT_EQ(WEXITSTATUS(puppet.Stop().status), 0);
}

// Arrays longer than what is kept around their beginning: the first fault says that memory was left out.
TEST_F(RankInjectorTrimTest, MissedMemoryIsNamed) {
  constexpr int64_t kLong = 8 << 20;  // 64 MB an array
  PuppetRank puppet({"1", absl::StrCat(kLong), "0"});
  Open(puppet);
  const auto answer = Shadow(*injector_, Trim({{{0x1000, 0x2000}}, false}, 1));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->missed_memory);
  ASSERT_FALSE(answer->runs.empty());
  EXPECT_FALSE(answer->runs[0].ok);
  EXPECT_THAT(answer->runs[0].failure, HasSubstr("left out"));
  const auto whole = Shadow(*injector_, Request({{.variant = 0}}, 1));
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_TRUE(whole->runs[0].ok) << whole->runs[0].failure;
  EXPECT_TRUE(injector_->Uninstall().ok());
  EXPECT_EQ(WEXITSTATUS(puppet.Stop().status), 0);
}

// A team that stood still for a question whose answer was no stood still all the same.
TEST_F(RankInjectorTrimTest, WhatARefusalCostsIsToldAndCharged) {
  PuppetRank puppet({"1", absl::StrCat(kN), "0", "big"});
  Open(puppet);
  const int64_t before = injector_->cost().pass_through_ns;
  audit_.clear();
  absl::StatusOr<ShadowAnswer> answer;
  for (int i = 0; i < 10 && !absl::IsAborted(answer.status()); ++i)
    answer = injector_->RunShadow(Trim({{{0x1000, uint64_t{1} << 47}}, false}, 1));
  ASSERT_TRUE(absl::IsAborted(answer.status())) << answer.status();
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("may touch so much"));
  ASSERT_FALSE(audit_.empty());
  EXPECT_EQ(audit_.back().action, "shadow");
  EXPECT_GT(audit_.back().pause_ns, 0);
  EXPECT_NE(audit_.back().outcome, "ok");
  EXPECT_GE(injector_->cost().pass_through_ns - before, audit_.back().pause_ns);
  EXPECT_EQ(injector_->cost().shadows, 0u);
  EXPECT_TRUE(injector_->Uninstall().ok());
  EXPECT_EQ(WEXITSTATUS(puppet.Stop().status), 0);
}

// Stops of the whole process at any instant: nobody overtakes anybody.
TEST_F(RankInjectorTrimTest, StoppedAndContinuedInBetween) {
  PuppetRank puppet({"2", "3000", "0", "big"});
  Open(puppet);
  const std::vector<std::string> flags = Flags(puppet.pid());
  const Footprint footprint = Probe(2);
  std::atomic<bool> over = false;
  std::thread disturber([&] {
    for (int i = 0; i < 300 && !over; ++i) {
      kill(puppet.pid(), SIGSTOP);
      std::this_thread::sleep_for(std::chrono::microseconds(500 + 97 * i % 3000));
      kill(puppet.pid(), SIGCONT);
      std::this_thread::sleep_for(std::chrono::microseconds(1000 + 131 * i % 9000));
    }
  });
  int done = 0;
  for (int i = 0; i < 30; ++i) done += injector_->RunShadow(Trim(footprint, 2)).ok();
  over = true;
  disturber.join();
  kill(puppet.pid(), SIGCONT);
  EXPECT_GT(done, 3);
  EXPECT_EQ(Flags(puppet.pid()), flags);
  EXPECT_TRUE(injector_->Uninstall().ok());
  const PuppetEnd end = puppet.Stop();
  EXPECT_TRUE(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0) << end.status;
  EXPECT_EQ(end.checksum, ChecksumOf(2, 3000, end.passes));
}

// An agent that narrows without end, in a process of its own; *shadows counts those that were.
pid_t StartAgent(const PuppetRank& puppet, const InjectorOptions& base, const Footprint& footprint,
                 std::atomic<int>* shadows) {
  const pid_t agent = fork();
  if (agent != 0) return agent;
  auto tracer = Tracer::Start({PERFD_TRACER, {}});
  if (!tracer.ok()) _exit(1);
  InjectorOptions options = base;
  options.tracer = tracer->get();
  options.audit = nullptr;
  auto injector = RankInjector::Open(puppet.rank(), options);
  if (!injector.ok() || !(*injector)->Install({puppet.MakeLoop({})}).ok()) _exit(2);
  for (;;) {
    ShadowRequest request;
    request.team = 2;
    request.shadow_ns = 500 * kMs;
    request.timeout_ns = 500 * kMs;
    request.runs = {{.variant = 0}};
    request.footprint = footprint;
    *shadows += (*injector)->RunShadow(request).ok() ? 1 : 0;
  }
}

TEST_F(RankInjectorTrimTest, KilledAgentsLeaveNoMark) {
  PuppetRank puppet({"2", "3000", "0", "big"});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const std::vector<std::string> flags = Flags(puppet.pid());
  Open(puppet);
  const Footprint footprint = Probe(2);
  ASSERT_TRUE(injector_->Uninstall().ok());
  ASSERT_EQ(Flags(puppet.pid()), flags);
  auto* shadows = static_cast<std::atomic<int>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(shadows, MAP_FAILED);
  for (int i = 0; i < 15; ++i) {
    const pid_t agent = StartAgent(puppet, options_, footprint, shadows);
    const int before = *shadows;
    for (int k = 0; k < 5000 && *shadows < before + 2; ++k) usleep(1000);
    usleep(static_cast<unsigned>(7919 * i % 15'000));
    kill(agent, SIGKILL);
    int status = 0;
    waitpid(agent, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the agent ended by itself: " << WEXITSTATUS(status);
    usleep(1000);  // the tracer dies with its agent
    const HealReport report = HealRank(puppet.pid(), options_);
    ASSERT_TRUE(report.status.ok()) << i << ": " << report.status;
    ASSERT_EQ(Flags(puppet.pid()), flags) << i;
  }
  EXPECT_GE(*shadows, 30);
  munmap(shadows, 4096);
  const PuppetEnd end = puppet.Stop();
  EXPECT_TRUE(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0) << end.status;
  EXPECT_EQ(end.checksum, ChecksumOf(2, 3000, end.passes));
}

}  // namespace
}  // namespace perfd::agent
