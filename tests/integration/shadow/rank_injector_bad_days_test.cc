// Everything that may go wrong around an injector: the rank must run on and be right.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <numeric>
#include <random>
#include <thread>

#include "agent/shadow/region_injection.h"
#include "agent/shadow/region_layout.h"
#include "tests/integration/shadow/injector_fixture.h"

namespace perfd::agent {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

void Sleep(int64_t us) {
  std::this_thread::sleep_for(microseconds(us));
}

TEST_F(RankInjectorTest, TwoLoopsAtOnce) {
  PuppetRank puppet({"2", "3000", "0", "two"});
  const std::vector<uint8_t> text = puppet.Text();
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  auto installed = (*injector)->Install({puppet.MakeLoop({}), puppet.MakeLoop({}, 1)});
  ASSERT_TRUE(installed.ok()) << installed.status();
  for (int round = 0; round < 5; ++round) {
    for (int loop = 0; loop < 2; ++loop) {
      ASSERT_TRUE(installed->at(static_cast<size_t>(loop)).status.ok());
      ShadowRequest request = Request({{.variant = 0}, {.variant = 1}}, 2);
      request.loop = loop;
      auto answer = Shadow(**injector, request);
      ASSERT_TRUE(answer.ok()) << answer.status();
      for (const ShadowRun& run : answer->runs) EXPECT_TRUE(run.ok) << run.failure;
      EXPECT_EQ(answer->runs[2].iterations, 3000u);
    }
  }
  // An address in a copy is its loop's.
  for (const InstalledLoop& loop : *installed) {
    for (const AddressPair& pair : loop.copies[1].address_map)
      EXPECT_EQ((*injector)->OriginalAddress(pair.copy), pair.original);
  }
  EXPECT_EQ((*injector)->OriginalAddress(0x1000), std::nullopt);
  ASSERT_TRUE((*injector)->Uninstall().ok());
  EXPECT_EQ(puppet.Text(), text);
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(2, 3000, end.passes, "two"));
}

// Restoring more than there is: what is not private writable memory is left alone.
TEST_F(RankInjectorTest, RestoresWhatCanBeRestored) {
  PuppetRank puppet({"2", "3000", "0", "two"});
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  auto installed = (*injector)->Install({puppet.MakeLoop({}, 1)});
  ASSERT_TRUE(installed.ok()) << installed.status();
  auto first = Shadow(**injector, Request({{.variant = 2}}, 2));
  ASSERT_TRUE(first.ok()) << first.status();
  ShadowRequest request =
      Request({{.variant = 0, .restore = true}, {.variant = 1, .restore = true}}, 2);
  for (const auto& trace : first->traces) {
    for (const TraceRecord& record : trace)
      request.restores.emplace_back(record.lowest, record.highest + 8 - record.lowest);
  }
  request.restores.emplace_back(0x10, 4096);                // not mapped
  request.restores.emplace_back(0xffffffffff600000, 4096);  // never writable
  auto answer = Shadow(**injector, request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  for (const ShadowRun& run : answer->runs) EXPECT_TRUE(run.ok) << run.failure;
  ASSERT_TRUE((*injector)->Uninstall().ok());
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(2, 3000, end.passes, "two"));
}

TEST_F(RankInjectorTest, SameLoopTwiceIsRefusedOnce) {
  PuppetRank puppet({"1", "3000", "0"});
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok());
  auto installed = (*injector)->Install({puppet.MakeLoop({}), puppet.MakeLoop({})});
  ASSERT_TRUE(installed.ok()) << installed.status();
  EXPECT_TRUE(installed->at(0).status.ok());
  EXPECT_THAT(std::string(installed->at(1).status.message()), HasSubstr("shares code"));
  ASSERT_TRUE((*injector)->Uninstall().ok());
}

// The application's own children and threads come and go meanwhile; the puppet checks what it sees of them.
class Company : public RankInjectorTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(Company, OfTheRankIsNotDisturbed) {
  PuppetRank puppet({"2", "3000", "0", GetParam()});
  for (int round = 0; round < 3; ++round) {
    auto injector = RankInjector::Open(puppet.rank(), options_);
    ASSERT_TRUE(injector.ok()) << injector.status();
    auto installed = (*injector)->Install({puppet.MakeLoop({})});
    ASSERT_TRUE(installed.ok()) << installed.status();
    int done = 0;
    for (int i = 0; i < 10; ++i)
      done += (*injector)->RunShadow(Request({{.variant = 0}, {.variant = 1}}, 2)).ok();
    EXPECT_GT(done, 0);
    absl::Status out = (*injector)->Uninstall();
    ASSERT_TRUE(out.ok()) << out;
  }
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(WEXITSTATUS(end.status), 0);
  EXPECT_EQ(end.checksum, ChecksumOf(2, 3000, end.passes));
}
INSTANTIATE_TEST_SUITE_P(Modes, Company, ::testing::Values("forks", "churn"));

TEST_F(RankInjectorTest, AThreadThatWaitsForAnyCloneIsRefused) {
  PuppetRank puppet({"1", "2000", "0", "waits"});
  absl::Status status;
  // The thread may not have come to its wait yet.
  for (int i = 0; i < 5000 && status.ok(); ++i) {
    status = RankInjector::Open(puppet.rank(), options_).status();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("waits for any child"));
}

// Who asks now and then is not seen in time: one shadow may be reaped, and no second one.
TEST_F(RankInjectorTest, AProgramThatReapsAShadowGetsNoMore) {
  PuppetRank puppet({"1", "2000", "0", "polls"});
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
  absl::Status status;
  int shadows = 0;
  for (; shadows < 500 && (status.ok() || absl::IsUnavailable(status)); ++shadows)
    status = (*injector)->RunShadow(Request({{.variant = 0}}, 1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("reaped a shadow"));
  for (int i = 0; i < 5; ++i) {
    const absl::Status again = (*injector)->RunShadow(Request({{.variant = 0}}, 1)).status();
    EXPECT_TRUE(absl::IsUnavailable(again) || again == status) << again;
  }
  EXPECT_TRUE((*injector)->Uninstall().ok());
  const PuppetEnd end = puppet.Stop();
  EXPECT_EQ(WEXITSTATUS(end.status), 0);
  EXPECT_EQ(end.checksum, ChecksumOf(1, 2000, end.passes));
}

TEST_F(RankInjectorTest, StoppedAndContinuedInBetween) {
  PuppetRank puppet({"2", "3000", "0"});
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok());
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
  std::atomic<bool> over{false};
  std::thread disturber([&] {
    for (int i = 0; i < 40 && !over; ++i) {
      kill(puppet.pid(), SIGSTOP);
      Sleep(3000);
      kill(puppet.pid(), SIGCONT);
      Sleep(5000 + 400 * i);
    }
  });
  int done = 0;
  for (int i = 0; i < 20; ++i)
    done += (*injector)->RunShadow(Request({{.variant = 0}, {.variant = 1}}, 2)).ok();
  over = true;
  disturber.join();
  kill(puppet.pid(), SIGCONT);
  EXPECT_GT(done, 5);
  absl::Status out = (*injector)->Uninstall();
  ASSERT_TRUE(out.ok()) << out;
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(2, 3000, end.passes));
}

// An agent that measures without end, in a process of its own.
pid_t StartAgent(const PuppetRank& puppet, const InjectorOptions& base) {
  pid_t agent = fork();
  if (agent != 0) return agent;
  auto tracer = Tracer::Start({PERFD_TRACER, {}});
  if (!tracer.ok()) _exit(1);
  InjectorOptions options = base;
  options.tracer = tracer->get();
  options.audit = nullptr;
  for (;;) {
    auto injector = RankInjector::Open(puppet.rank(), options);
    if (!injector.ok() || !(*injector)->Install({puppet.MakeLoop({})}).ok()) _exit(2);
    for (int i = 0; i < 5; ++i) {
      ShadowRequest request;
      request.team = 2;
      request.shadow_ns = 500 * kMs;
      request.timeout_ns = 500 * kMs;
      request.runs = {{.variant = 0}, {.variant = 1}, {.variant = 2}};
      (*injector)->RunShadow(request).status().IgnoreError();
    }
    if (!(*injector)->Uninstall().ok()) _exit(3);
  }
}

TEST_F(RankInjectorTest, KilledAgentsAreHealed) {
  PuppetRank puppet({"2", "3000", "0"});
  const std::vector<uint8_t> text = puppet.Text();
  Sleep(50000);
  const std::vector<std::string> maps = puppet.Maps();
  std::mt19937 random(4711);
  int patched = 0;
  for (int i = 0; i < 25; ++i) {
    pid_t agent = StartAgent(puppet, options_);
    Sleep(5000 + static_cast<int64_t>(random() % 200000));
    kill(agent, SIGKILL);
    int status = 0;
    waitpid(agent, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the agent ended by itself: " << WEXITSTATUS(status);
    Sleep(1000);  // the tracer dies with its agent
    patched += puppet.Text() != text;
    HealReport report = HealRank(puppet.pid(), options_);
    ASSERT_TRUE(report.status.ok()) << i << ": " << report.status;
    ASSERT_EQ(puppet.Text(), text) << i;
    ASSERT_EQ(puppet.Maps(), maps) << i;
    ASSERT_EQ(Journals(), 0u);
  }
  printf("%d of 25 agents died with their patch in place\n", patched);
  EXPECT_GT(patched, 0);
  EXPECT_THAT(puppet.Children(), ::testing::IsEmpty());
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(end.checksum, ChecksumOf(2, 3000, end.passes));
}

// Between two operations of the tracer nothing changes in the rank: a death before each of them covers all instants.
TEST_F(RankInjectorTest, TracerDyingBeforeEveryOperation) {
  PuppetRank puppet = PuppetRank::OfAnotherUser({"2", "2000", "0"});
  const std::vector<uint8_t> text = puppet.Text();
  Sleep(50000);
  const std::vector<std::string> maps = puppet.Maps();
  int operations = 1, deaths = 0;
  for (bool survived = false; !survived && operations < 400; ++operations) {
    auto mortal =
        Tracer::Start({PERFD_TRACER, {"--die-before-operation", absl::StrCat(operations)}});
    ASSERT_TRUE(mortal.ok());
    InjectorOptions options = options_;
    options.tracer = mortal->get();
    const pid_t first = (*mortal)->pid();
    auto injector = RankInjector::Open(puppet.rank(), options);
    ASSERT_TRUE(injector.ok()) << injector.status();
    absl::Status status = (*injector)->Install({puppet.MakeLoop({})}).status();
    // What it does not get done on the way in, or out again, is left to whoever heals.
    if (status.ok()) status = (*injector)->Uninstall();
    survived = status.ok() && (*mortal)->pid() == first;
    deaths += !survived;
    const HealReport report = HealRank(puppet.pid(), options_);
    ASSERT_TRUE(report.status.ok()) << operations << ": " << report.status;
    ASSERT_EQ(puppet.Text(), text) << operations;
    ASSERT_EQ(puppet.Maps(), maps) << operations;
    ASSERT_EQ(Journals(), 0u) << operations;
  }
  printf("%d deaths of the tracer\n", deaths);
  EXPECT_GT(deaths, 30);
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(end.checksum, ChecksumOf(2, 2000, end.passes));
}

// Each hang takes as long as a stop may take: every operation in turn is for who has the time (PERFD_EVERY_OPERATION=1).
std::vector<int> OperationsToHangAt() {
  if (std::getenv("PERFD_EVERY_OPERATION") == nullptr) return {2, 9, 17, 28, 40, 55};
  std::vector<int> all(400);
  std::iota(all.begin(), all.end(), 1);
  return all;
}

TEST_F(RankInjectorTest, TracerThatHangs) {
  PuppetRank puppet = PuppetRank::OfAnotherUser({"2", "2000", "0"});
  const std::vector<uint8_t> text = puppet.Text();
  Sleep(50000);
  const std::vector<std::string> maps = puppet.Maps();
  int hung = 0;
  for (const int operation : OperationsToHangAt()) {
    auto hanging =
        Tracer::Start({PERFD_TRACER, {"--hang-before-operation", absl::StrCat(operation)}});
    ASSERT_TRUE(hanging.ok());
    InjectorOptions options = options_;
    options.tracer = hanging->get();
    const pid_t first = (*hanging)->pid();
    auto injector = RankInjector::Open(puppet.rank(), options);
    ASSERT_TRUE(injector.ok()) << injector.status();
    absl::Status status = (*injector)->Install({puppet.MakeLoop({})}).status();
    if (status.ok()) status = (*injector)->Uninstall();
    if (status.ok() && (*hanging)->pid() == first) break;  // there are fewer operations than that
    ++hung;
    const HealReport report = HealRank(puppet.pid(), options_);
    ASSERT_TRUE(report.status.ok()) << operation << ": " << report.status;
    ASSERT_EQ(puppet.Text(), text) << operation;
    ASSERT_EQ(puppet.Maps(), maps) << operation;
  }
  printf("%d hangs\n", hung);
  EXPECT_GE(hung, 4);
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(2, 2000, end.passes));
}

TEST_F(RankInjectorTest, HungAgentsStopNobody) {
  PuppetRank puppet({"2", "3000", "0"});
  std::mt19937 random(42);
  for (int i = 0; i < 4; ++i) {
    pid_t agent = StartAgent(puppet, options_);
    Sleep(20000 + static_cast<int64_t>(random() % 60000));
    kill(agent, SIGSTOP);
    // A shadow that waits for the agent gives up; the heartbeat grows stale; the rank's CPU time goes on.
    Sleep(300000);
    const uint64_t before = ProcFs().CpuNs(puppet.pid(), 0).value();
    Sleep(200000);
    EXPECT_GT(ProcFs().CpuNs(puppet.pid(), 0).value() - before, 20u * kMs);
    kill(agent, SIGKILL);
    waitpid(agent, nullptr, 0);
    Sleep(1000);
    EXPECT_TRUE(HealRank(puppet.pid(), options_).status.ok());
  }
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(2, 3000, end.passes));
}

TEST_F(RankInjectorTest, RankThatBecomesAnotherProgramIsLeftAlone) {
  PuppetRank puppet({"2", "2000", "0"});
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok());
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
  kill(puppet.pid(), SIGUSR1);
  for (int i = 0; i < 200 && ProcFs().Stamp(puppet.pid())->command != "sleep"; ++i) Sleep(5000);
  Sleep(20000);
  const std::vector<std::string> maps = puppet.Maps();
  EXPECT_FALSE((*injector)->RunShadow(Request({{.variant = 0}}, 2)).ok());
  absl::Status out = (*injector)->Uninstall();
  EXPECT_TRUE(out.ok()) << out;
  EXPECT_EQ(Journals(), 0u);
  EXPECT_EQ(puppet.Maps(), maps);
}

// A process may write what it likes where a region of ours would be.
TEST_F(RankInjectorTest, HostileRegionsAreRefused) {
  const uint64_t bytes = RegionBytes(1);
  void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  EXPECT_EQ(ReadInjectionFromRank(getpid()).status().code(), absl::StatusCode::kNotFound);
  auto* header = static_cast<RegionHeader*>(shared);
  auto fill = [&] {
    *header = {};
    header->magic = kShadowMagic;
    header->version = kShadowLayoutVersion;
    header->block_count = 1;
    header->region_address = reinterpret_cast<uint64_t>(shared);
    header->region_bytes = bytes;
  };
  fill();
  EXPECT_TRUE(ReadInjectionFromRank(getpid()).ok());
  auto refused = [] {
    return ReadInjectionFromRank(getpid()).status().code() == absl::StatusCode::kFailedPrecondition;
  };
  header->version = kShadowLayoutVersion + 1;
  EXPECT_TRUE(refused());
  fill();
  header->block_count = kMaxTeam + 1;
  EXPECT_TRUE(refused());
  fill();
  header->region_bytes += 4096;
  EXPECT_TRUE(refused());
  fill();
  auto* site = reinterpret_cast<Site*>(static_cast<char*>(shared) + kSitesOffset);
  site->header_address = 1;
  site->stolen_bytes = kMaxStolenBytes + 1;
  EXPECT_TRUE(refused());
  site->stolen_bytes = 5;
  site->map_first = kMaxMapEntries;
  site->map_count = 1;
  EXPECT_TRUE(refused());
  site->map_first = kMaxMapEntries - 1;
  EXPECT_TRUE(ReadInjectionFromRank(getpid()).ok());
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    fill();
    for (int k = 0; k < 4; ++k) {
      const uint64_t at = 16 + random() % (kPlanOffset - 16);
      static_cast<uint8_t*>(shared)[at] = static_cast<uint8_t>(random());
    }
    (void)ReadInjectionFromRank(getpid());
  }
  munmap(shared, bytes);
}

TEST_F(RankInjectorTest, PlanThatDoesNotFitEndsInTime) {
  PuppetRank puppet({"2", "100000", "0"});
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok());
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
  // 400 runs of at least 0.1 ms in 15 ms: the soft limit ends it in time, and what was measured is kept.
  ShadowRequest request = Request(std::vector<RunSpec>(400, RunSpec{.variant = 2}), 2);
  request.shadow_ns = 15 * kMs;
  auto answer = Shadow(**injector, request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_LT(answer->pause_ns, 500 * kMs);
  EXPECT_FALSE(answer->runs.back().ok);
  EXPECT_FALSE(answer->runs.back().failure.empty());
  ASSERT_TRUE((*injector)->Uninstall().ok());
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(2, 100000, end.passes));
}

}  // namespace
}  // namespace perfd::agent
