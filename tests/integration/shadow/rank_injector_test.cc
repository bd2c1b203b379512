// The whole way on a real process: install, census, live timing, shadows, uninstall; the process must not notice.
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <thread>

#include "agent/shadow/timing/live_reading.h"
#include "tests/integration/shadow/lab_fixture.h"

namespace perfd {
namespace {

uint64_t MedianCycles(const ShadowAnswer& answer, int run_of) {
  std::vector<uint64_t> cycles;
  for (const ShadowRun& run : answer.runs) {
    if (run.run % 3 == run_of && run.ok && run.run >= 3) cycles.push_back(run.cycles);
  }
  if (cycles.empty()) return 0;
  std::sort(cycles.begin(), cycles.end());
  return cycles[cycles.size() / 2];
}

TEST_F(RankLabTest, MeasuresALoopAndLeavesNothing) {
  constexpr int64_t kN = 20000;
  LabProcess puppet({"2", absl::StrCat(kN), "0"});
  const std::vector<uint8_t> text = puppet.Text();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::vector<std::string> maps = puppet.Maps();
  const int descriptors = puppet.Descriptors();
  auto lab = RankLab::Open(puppet.rank(), options_);
  ASSERT_TRUE(lab.ok()) << lab.status();
  auto installed = (*lab)->Install({puppet.MakeLoop({"LS"})});
  ASSERT_TRUE(installed.ok()) << installed.status();
  const InstalledLoop& loop = installed->at(0);
  ASSERT_TRUE(loop.status.ok()) << loop.status;
  EXPECT_NE(puppet.Text(), text);
  EXPECT_EQ(Journals(), 1u);
  auto census = (*lab)->TakeCensus(0, 100 * kMs);
  ASSERT_TRUE(census.ok()) << census.status();
  EXPECT_EQ(census->team, 2);
  EXPECT_GT(census->entries_per_second, 10);
  auto live = (*lab)->TimeLive(0, 20, 2000 * kMs);
  ASSERT_TRUE(live.ok()) << live.status();
  EXPECT_EQ(live->size(), 20u);
  std::vector<RunWish> runs;
  const bool with_ls = loop.names.size() > 3;
  for (int i = 0; i < 8; ++i) {
    runs.push_back({.variant = 0});
    runs.push_back({.variant = 1});
    runs.push_back({.variant = with_ls ? 3 : 0});
  }
  const auto counted =
      std::find_if(loop.names.begin(), loop.names.end(),
                   [](const VariantName& name) { return name.Text() == "COUNT+LS"; });
  ASSERT_EQ(counted != loop.names.end(), with_ls);
  if (with_ls)
    runs.push_back({.variant = static_cast<int32_t>(std::distance(loop.names.begin(), counted))});
  runs.push_back({.variant = 2});
  auto answer = Shadow(**lab, Wish(runs, 2));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->outcome, "done");
  ASSERT_EQ(answer->runs.size(), runs.size() * 2);
  for (const ShadowRun& run : answer->runs) {
    EXPECT_TRUE(run.ok) << run.failure;
    const int variant = runs[static_cast<size_t>(run.run)].variant;
    if (variant == 0 || variant == 3) continue;
    EXPECT_EQ(run.iterations, static_cast<uint64_t>(kN));
  }
  ASSERT_EQ(answer->traces.size(), 2u);
  ASSERT_EQ(answer->traces[0].size(), loop.copies[2].references.size());
  for (const TraceRecord& record : answer->traces[0])
    EXPECT_EQ(record.count, static_cast<uint64_t>(kN));
  std::sort(live->begin(), live->end());
  printf(
      "live %lu, shadow REF %lu COUNT %lu LS %lu ticks; probe %lu; fork %ld us, pause %ld us; "
      "stops %lu, longest %ld us\n",
      (*live)[live->size() / 2], MedianCycles(*answer, 0), MedianCycles(*answer, 1),
      MedianCycles(*answer, 2), answer->probe_cycles, answer->fork_ns / 1000,
      answer->pause_ns / 1000, (*lab)->cost().stops, (*lab)->cost().longest_stop_ns / 1000);
  EXPECT_GT(answer->pause_begin_ns, 0);
  ASSERT_TRUE((*lab)->Uninstall().ok());
  EXPECT_EQ(puppet.Text(), text);
  EXPECT_EQ(puppet.Maps(), maps);
  EXPECT_EQ(puppet.Descriptors(), descriptors);
  EXPECT_THAT(puppet.Children(), ::testing::IsEmpty());
  EXPECT_EQ(Journals(), 0u);
  std::vector<std::string> actions;
  for (const AuditEntry& entry : audit_) actions.push_back(entry.action);
  EXPECT_THAT(actions, ::testing::IsSupersetOf({"map", "install", "shadow", "restore", "unmap"}));
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.status, 0);
  EXPECT_GT(end.passes, 100);
  EXPECT_EQ(end.checksum, ChecksumOf(2, kN, end.passes));
}

TEST_F(RankLabTest, ReadingTheClockIsNoPartOfALiveInstance) {
  LabProcess puppet({"1", "1", "0"});  // one pass
  auto lab = RankLab::Open(puppet.rank(), options_);
  ASSERT_TRUE(lab.ok()) << lab.status();
  ASSERT_TRUE((*lab)->Install({puppet.MakeLoop({})}).ok());
  auto live = (*lab)->TimeLive(0, 400, 5000 * kMs);
  ASSERT_TRUE(live.ok()) << live.status();
  ASSERT_GE(live->size(), 100u);
  std::sort(live->begin(), live->end());
  // The mean, since clocks move in steps; without interrupts.
  const auto most = live->begin() + static_cast<std::ptrdiff_t>(live->size() * 9 / 10);
  const double mean = static_cast<double>(std::accumulate(live->begin(), most, uint64_t{0})) /
                      static_cast<double>(std::distance(live->begin(), most));
  printf("one pass %.1f ticks, reading the clock %lu\n", mean, LiveReadingTicks());
  EXPECT_GT(LiveReadingTicks(), 10u);
  EXPECT_LT(mean, static_cast<double>(LiveReadingTicks()));
  ASSERT_TRUE((*lab)->Uninstall().ok());
}

TEST_F(RankLabTest, InstallsAgainAndAgain) {
  LabProcess puppet({"2", "2000", "0"});
  const std::vector<uint8_t> text = puppet.Text();
  for (int i = 0; i < 10; ++i) {
    auto lab = RankLab::Open(puppet.rank(), options_);
    ASSERT_TRUE(lab.ok()) << lab.status();
    auto installed = (*lab)->Install({puppet.MakeLoop({})});
    ASSERT_TRUE(installed.ok()) << installed.status();
    auto answer = Shadow(**lab, Wish({{.variant = 0}, {.variant = 1}}, 2));
    ASSERT_TRUE(answer.ok()) << answer.status();
    absl::Status out = (*lab)->Uninstall();
    ASSERT_TRUE(out.ok()) << out;
    ASSERT_EQ(puppet.Text(), text);
  }
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(2, 2000, end.passes));
}

TEST_F(RankLabTest, PatchGoesAndComesBack) {
  LabProcess puppet({"1", "2000", "0"});
  const std::vector<uint8_t> text = puppet.Text();
  auto lab = RankLab::Open(puppet.rank(), options_);
  ASSERT_TRUE(lab.ok()) << lab.status();
  ASSERT_TRUE((*lab)->Install({puppet.MakeLoop({})}).ok());
  ASSERT_TRUE((*lab)->SetPatched(0, false).ok());
  EXPECT_EQ(puppet.Text(), text);
  EXPECT_FALSE((*lab)->TakeCensus(0, 10 * kMs).ok());
  ASSERT_TRUE((*lab)->SetPatched(0, true).ok());
  auto census = (*lab)->TakeCensus(0, 50 * kMs);
  ASSERT_TRUE(census.ok());
  EXPECT_EQ(census->team, 1);
  ASSERT_TRUE((*lab)->Uninstall().ok());
  EXPECT_EQ(puppet.Text(), text);
}

TEST_F(RankLabTest, LoopThatWritesSharedMemoryIsContained) {
  LabProcess puppet({"2", "2000", "0", "shared"});
  auto lab = RankLab::Open(puppet.rank(), options_);
  ASSERT_TRUE(lab.ok()) << lab.status();
  ASSERT_TRUE((*lab)->Install({puppet.MakeLoop({})}).ok());
  auto answer = Shadow(**lab, Wish({{.variant = 0}}, 2));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->runs.at(0).ok);
  EXPECT_THAT(answer->runs.at(0).failure, ::testing::HasSubstr("SIGSEGV"));
  ASSERT_TRUE((*lab)->Uninstall().ok());
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(2, 2000, end.passes));
}

TEST_F(RankLabTest, DirectInputOutputIsRefused) {
  const std::string file = absl::StrCat(PERFD_SCRATCH, "/direct-", getpid());
  LabProcess puppet({"1", "2000", "0", "direct", file});
  auto lab = RankLab::Open(puppet.rank(), options_);
  EXPECT_EQ(lab.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(lab.status().message()), ::testing::HasSubstr("direct I/O"));
  std::filesystem::remove(file);
}

// What was harmless when the lab was opened is looked at again before every fork.
TEST_F(RankLabTest, DirectInputOutputThatBeginsLaterIsRefused) {
  const std::string file = absl::StrCat(PERFD_SCRATCH, "/late-", getpid());
  LabProcess puppet({"1", "2000", "0", "late", file});
  auto lab = RankLab::Open(puppet.rank(), options_);
  ASSERT_TRUE(lab.ok()) << lab.status();
  ASSERT_TRUE((*lab)->Install({puppet.MakeLoop({})}).ok());
  const int descriptors = puppet.Descriptors();
  EXPECT_TRUE(Shadow(**lab, Wish({{.variant = 0}}, 1)).ok());
  kill(puppet.pid(), SIGUSR2);
  for (int i = 0; i < 5000 && puppet.Descriptors() == descriptors; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const absl::Status status = (*lab)->RunShadow(Wish({{.variant = 0}}, 1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("direct I/O"));
  EXPECT_TRUE((*lab)->Uninstall().ok());
  std::filesystem::remove(file);
}

std::string FileOf(pid_t pid, const char* name) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/", name));
  return {std::istreambuf_iterator<char>(file), {}};
}

// The first to be ended where memory runs out, and no core whatever happens to it.
TEST_F(RankLabTest, TheShadowMakesRoomForTheRank) {
  LabProcess puppet({"1", "200000", "0"});
  auto lab = RankLab::Open(puppet.rank(), options_);
  ASSERT_TRUE(lab.ok()) << lab.status();
  ASSERT_TRUE((*lab)->Install({puppet.MakeLoop({})}).ok());
  const std::string score = FileOf(puppet.pid(), "oom_score_adj");
  std::atomic<bool> over = false;
  std::string shadow_score, limits;
  std::thread watch([&] {
    while (!over && limits.empty()) {
      for (int32_t child : puppet.Children()) {
        shadow_score = FileOf(child, "oom_score_adj");
        if (shadow_score == "1000\n") limits = FileOf(child, "limits");
      }
    }
  });
  const auto answer = Shadow(**lab, Wish(std::vector<RunWish>(400), 1));
  over = true;
  watch.join();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(shadow_score, "1000\n");
  EXPECT_THAT(limits, ::testing::ContainsRegex("Max core file size +0 +0 "));
  EXPECT_EQ(FileOf(puppet.pid(), "oom_score_adj"), score);
  EXPECT_TRUE((*lab)->Uninstall().ok());
}

TEST_F(RankLabTest, LoopThatIsNotEnteredIsGivenUp) {
  // One pass takes far longer than the wait.
  LabProcess puppet({"1", "2000", "0"});
  auto lab = RankLab::Open(puppet.rank(), options_);
  ASSERT_TRUE(lab.ok());
  ASSERT_TRUE((*lab)->Install({puppet.MakeLoop({})}).ok());
  ShadowWish wish = Wish({{.variant = 0}}, 1);
  wish.countdown = int64_t{1} << 60;
  wish.timeout_ns = 50 * kMs;
  const int64_t before = (*lab)->cost().pass_through_ns;
  EXPECT_EQ((*lab)->RunShadow(wish).status().code(), absl::StatusCode::kDeadlineExceeded);
  // Entries are slow ones all the while: of 1 us, for 50 ms, on a host that may be busy.
  EXPECT_GE((*lab)->cost().pass_through_ns - before, int64_t{1000} * 400);
  auto answer = Shadow(**lab, Wish({{.variant = 0}}, 1));
  EXPECT_TRUE(answer.ok()) << answer.status();
  ASSERT_TRUE((*lab)->Uninstall().ok());
}

class LostAgentTest : public RankLabTest {
 protected:
  // An agent that dies with its patch in place.
  void LoseAgent(LabProcess& puppet) {
    pid_t agent = fork();
    if (agent == 0) {
      auto tracer = Tracer::Start({PERFD_TRACER, {}});
      LabOptions own = options_;
      own.tracer = tracer->get();
      own.audit = nullptr;
      auto lab = RankLab::Open(puppet.rank(), own);
      auto installed = (*lab)->Install({puppet.MakeLoop({})});
      kill(getpid(), installed.ok() ? SIGKILL : SIGTERM);
    }
    int status = 0;
    waitpid(agent, &status, 0);
    ASSERT_EQ(WTERMSIG(status), SIGKILL);
  }
};

TEST_F(LostAgentTest, ItsJumpsAreTakenOutBeforeNewOnesComeIn) {
  LabProcess puppet({"2", "2000", "0"});
  const std::vector<uint8_t> text = puppet.Text();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::vector<std::string> maps = puppet.Maps();
  LoseAgent(puppet);
  EXPECT_NE(puppet.Text(), text);
  LabOptions rehearsal = options_;
  rehearsal.tracer = nullptr;
  EXPECT_EQ(RankLab::Open(puppet.rank(), rehearsal).status().code(),
            absl::StatusCode::kFailedPrecondition);
  auto lab = RankLab::Open(puppet.rank(), options_);
  ASSERT_TRUE(lab.ok()) << lab.status();
  EXPECT_EQ(puppet.Text(), text);
  EXPECT_EQ(puppet.Maps(), maps);
  ASSERT_FALSE(audit_.empty());
  EXPECT_EQ(audit_.front().action, "heal");
  ASSERT_TRUE((*lab)->Install({puppet.MakeLoop({})}).ok());
  ASSERT_TRUE((*lab)->Uninstall().ok());
  EXPECT_EQ(puppet.Text(), text);
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(2, 2000, end.passes));
}

// Without a journal nobody knows that the other agent is no more.
TEST_F(LostAgentTest, WhatMayBeAnotherAgentsIsLeftAlone) {
  LabProcess puppet({"2", "2000", "0"});
  const std::vector<uint8_t> text = puppet.Text();
  LoseAgent(puppet);
  std::filesystem::remove_all(directory_);
  const std::vector<uint8_t> altered = puppet.Text();
  auto lab = RankLab::Open(puppet.rank(), options_);
  EXPECT_EQ(lab.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(lab.status().message()), ::testing::HasSubstr("perf-agent heal"));
  EXPECT_EQ(puppet.Text(), altered);
  EXPECT_TRUE(HealRank(puppet.pid(), options_).status.ok());
  EXPECT_EQ(puppet.Text(), text);
  puppet.Stop();
}

TEST_F(LostAgentTest, HealsWhatItLeft) {
  for (bool with_journal : {true, false}) {
    LabProcess puppet({"2", "2000", "0"});
    const std::vector<uint8_t> text = puppet.Text();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const std::vector<std::string> maps = puppet.Maps();
    LoseAgent(puppet);
    EXPECT_NE(puppet.Text(), text);
    if (!with_journal) std::filesystem::remove_all(directory_);
    HealReport report = HealRank(puppet.pid(), options_);
    EXPECT_TRUE(report.status.ok()) << report.status;
    EXPECT_THAT(report.done, ::testing::HasSubstr("restored 1 loops"));
    EXPECT_EQ(puppet.Text(), text);
    EXPECT_EQ(puppet.Maps(), maps);
    EXPECT_EQ(Journals(), 0u);
    EXPECT_EQ(HealRank(puppet.pid(), options_).done, "nothing was injected");
    PuppetEnd end = puppet.Stop();
    EXPECT_EQ(end.checksum, ChecksumOf(2, 2000, end.passes));
  }
}

TEST_F(RankLabTest, RankThatEndsIsNoError) {
  LabProcess puppet({"1", "2000", "0"});
  auto lab = RankLab::Open(puppet.rank(), options_);
  ASSERT_TRUE(lab.ok());
  ASSERT_TRUE((*lab)->Install({puppet.MakeLoop({})}).ok());
  puppet.Stop();
  EXPECT_EQ((*lab)->RunShadow(Wish({{.variant = 0}}, 1)).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_TRUE((*lab)->Uninstall().ok());
  EXPECT_EQ(Journals(), 0u);
}

}  // namespace
}  // namespace perfd
