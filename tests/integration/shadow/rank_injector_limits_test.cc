// What an injector may not do, whatever it is asked: hold a rank longer than it was told, go on when altering has been ended, leave
// memory that is writable and executable, or let a shadow outlive its rank.
#include <linux/capability.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "agent/procfs/procfs.h"
#include "agent/shadow/region_doorbell.h"
#include "tests/integration/shadow/injector_fixture.h"

namespace perfd::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(RankInjectorTest, TheForkIsPartOfThePauseThatIsBounded) {
  PuppetRank puppet({"1", "2000", "0", "big"});  // 256 MB of small pages
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
  int64_t fork_ns = INT64_MAX;
  for (int i = 0; i < 3; ++i) {
    auto whole = Shadow(**injector, Request({{.variant = 0}}, 1));
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_TRUE(whole->runs.at(0).ok) << whole->runs.at(0).failure;
    fork_ns = std::min(fork_ns, whole->fork_ns);
  }
  ShadowRequest request = Request({{.variant = 0}}, 1);
  request.shadow_ns = fork_ns / 2;
  if (request.shadow_ns < 1 * kMs) GTEST_SKIP() << "SKIPPED: forks take less than a bound may be";
  auto none = Shadow(**injector, request);
  // Nothing may run when the fork alone has taken twice as long; nor may figures of the shadow before be taken for its own.
  EXPECT_TRUE(!none.ok() || !none->runs.at(0).ok)
      << "pause " << none->pause_ns << ", fork " << none->fork_ns << ", bound "
      << request.shadow_ns;
  ASSERT_TRUE((*injector)->Uninstall().ok());
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(1, 2000, end.passes));
}

// This thread may not open files of mappings for as long as it lives.
class Deaf {
 public:
  Deaf() {
    syscall(SYS_capget, &header_, rights_);
    __user_cap_data_struct less[2] = {rights_[0], rights_[1]};
    less[0].effective &= ~(1u << CAP_SYS_ADMIN);
    less[1].effective &= ~(1u << (CAP_CHECKPOINT_RESTORE - 32));
    syscall(SYS_capset, &header_, less);
  }
  ~Deaf() { syscall(SYS_capset, &header_, rights_); }
  Deaf(const Deaf&) = delete;
  Deaf& operator=(const Deaf&) = delete;

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct rights_[2] = {};
};

// Of this process's own memory, as of a rank's.
bool MayWait() {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const auto memory = Memory::Open(getpid(), ProcFs().Stamp(getpid())->start_ticks);
  const bool can_wait =
      memory.ok() && RegionDoorbell(&*memory, reinterpret_cast<uint64_t>(page)).can_wait();
  munmap(page, 4096);
  return can_wait;
}

int64_t Waits() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

TEST_F(RankInjectorTest, AnAgentThatHearsNoBellLooks) {
  PuppetRank puppet({"2", "2000", "0"});
  int64_t probes[2] = {};  // while nobody comes, by deaf
  for (const bool deaf : {true, false}) {
    std::optional<Deaf> without;
    if (deaf) without.emplace();
    auto injector = RankInjector::Open(puppet.rank(), options_);
    ASSERT_TRUE(injector.ok()) << injector.status();
    ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
    auto entry_count = (*injector)->CountEntries(0, 100 * kMs);
    ASSERT_TRUE(entry_count.ok()) << entry_count.status();
    EXPECT_EQ(entry_count->team, 2);
    auto live = (*injector)->TimeLive(0, 20, 2000 * kMs);
    ASSERT_TRUE(live.ok()) << live.status();
    EXPECT_EQ(live->size(), 20u);
    std::vector<int64_t> pauses;
    for (int i = 0; i < 9; ++i) {
      auto answer = Shadow(**injector, Request({{.variant = 0}}, 2));
      ASSERT_TRUE(answer.ok()) << answer.status();
      EXPECT_EQ(answer->outcome, "done");
      pauses.push_back(answer->pause_ns);
    }
    std::sort(pauses.begin(), pauses.end());
    printf("%s: pauses of %.2f ms, the longest %.2f ms\n", deaf ? "looking" : "hearing",
           static_cast<double>(pauses[pauses.size() / 2]) / 1e6,
           static_cast<double>(pauses.back()) / 1e6);
    std::this_thread::sleep_for(milliseconds(20));  // whoever was let go is out of the payload
    kill(puppet.pid(), SIGSTOP);
    ShadowRequest nobody = Request({{.variant = 0}}, 2);
    nobody.timeout_ns = 300 * kMs;
    const int64_t before = Waits();
    const absl::Status status = (*injector)->RunShadow(nobody).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    probes[deaf ? 1 : 0] = Waits() - before;
    kill(puppet.pid(), SIGCONT);
    ASSERT_TRUE((*injector)->Uninstall().ok());
  }
  printf("300 ms: %ld looks of one that is deaf, %ld of one that hears\n", probes[1], probes[0]);
  if (!MayWait()) GTEST_SKIP() << "SKIPPED: no right to wait for the doorbell";
  EXPECT_LT(2 * probes[0], probes[1]);
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(2, 2000, end.passes));
}

TEST_F(RankInjectorTest, EndingEndsTheWaitForALoop) {
  PuppetRank puppet({"1", "2000", "0"});
  std::atomic<bool> cancelled = false;
  options_.cancelled = [&] { return cancelled.load(); };
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
  kill(puppet.pid(), SIGSTOP);  // it enters no loop
  std::thread ender([&] {
    std::this_thread::sleep_for(milliseconds(200));
    cancelled = true;
  });
  ShadowRequest request = Request({{.variant = 0}}, 1);
  request.timeout_ns = 60'000 * kMs;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE((*injector)->RunShadow(request).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(5000));
  ender.join();
  kill(puppet.pid(), SIGCONT);
  // Nothing is begun any more; what is in is taken out.
  EXPECT_EQ((*injector)->RunShadow(request).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ((*injector)->CountEntries(0, 10 * kMs).status().code(), absl::StatusCode::kCancelled);
  ASSERT_TRUE((*injector)->SetPatched(0, false).ok());
  EXPECT_EQ((*injector)->SetPatched(0, true).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ((*injector)->Add({puppet.MakeLoop({}, 1)}).status().code(),
            absl::StatusCode::kCancelled);
  ASSERT_TRUE((*injector)->Uninstall().ok());
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(1, 2000, end.passes));
}

TEST_F(RankInjectorTest, NothingIsInstalledOnceAlteringHasEnded) {
  PuppetRank puppet({"1", "2000", "0"});
  const std::vector<uint8_t> text = puppet.Text();
  const std::vector<std::string> maps = puppet.Maps();
  options_.cancelled = [] { return true; };
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  EXPECT_EQ((*injector)->Install({puppet.MakeLoop({})}).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(puppet.Text(), text);
  EXPECT_EQ(puppet.Maps(), maps);
  EXPECT_EQ(Journals(), 0u);
}

TEST_F(RankInjectorTest, MemoryIsNeverWritableAndExecutable) {
  PuppetRank puppet({"2", "2000", "0", "two"});
  // readable, writable, executable: as PuppetRank::Maps has them.
  const auto neither = Each(Not(HasSubstr(" 111")));
  EXPECT_THAT(puppet.Maps(), ::testing::Contains(HasSubstr(" 101"))) << "it reads them";
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({"LS"})}).ok());
  EXPECT_THAT(puppet.Maps(), neither);
  ASSERT_TRUE(Shadow(**injector, Request({{.variant = 0}}, 2)).ok());
  ASSERT_TRUE((*injector)->Add({puppet.MakeLoop({}, 1)}).ok());
  ASSERT_TRUE((*injector)->SetPatched(0, false).ok());
  ASSERT_TRUE((*injector)->SetPatched(1, true).ok());
  EXPECT_THAT(puppet.Maps(), neither);
  ASSERT_TRUE((*injector)->Uninstall().ok());
  EXPECT_THAT(puppet.Maps(), neither);
}

uint64_t LockedBytes(int32_t pid) {
  return ProcFs().Status(pid)->memory.locked_bytes;
}

// Nothing of it is locked yet, and nothing tells that what we map would be. It may be near its limit.
TEST_F(RankInjectorTest, WhoLocksWhatItMapsIsGivenNothingWhereThatIsLimited) {
  PuppetRank puppet = PuppetRank::OfAnotherUser({"1", "2000", "0", "locks"});
  std::this_thread::sleep_for(milliseconds(50));  // until it has said so
  ASSERT_EQ(LockedBytes(puppet.pid()), 0u);
  rlimit limit{};  // it has ours
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  if (limit.rlim_cur > (60u << 20)) GTEST_SKIP() << "SKIPPED: it may lock as much as it likes";
  const std::vector<std::string> maps = puppet.Maps();
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  const absl::Status refused = (*injector)->Install({puppet.MakeLoop({})}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("RLIMIT_MEMLOCK"));
  EXPECT_EQ(LockedBytes(puppet.pid()), 0u);
  EXPECT_EQ(puppet.Maps(), maps);
  EXPECT_EQ(Journals(), 0u);
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(1, 2000, end.passes, "two"));
}

// With the right to lock at will it has no limit; nothing is asked.
TEST_F(RankInjectorTest, WhoMayLockAtWillIsMeasured) {
  if (geteuid() != 0) GTEST_SKIP() << "SKIPPED: needs the right to lock memory";
  PuppetRank puppet({"1", "2000", "0", "locks"});
  std::this_thread::sleep_for(milliseconds(50));
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
  EXPECT_GT(LockedBytes(puppet.pid()), 0u) << "else the test above sees nothing";
  ASSERT_TRUE(Shadow(**injector, Request({{.variant = 0}}, 1)).ok());
  ASSERT_TRUE((*injector)->Uninstall().ok());
  EXPECT_EQ(LockedBytes(puppet.pid()), 0u);
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(1, 2000, end.passes, "two"));
}

class ForkMarksTest : public RankInjectorTest,
                      public ::testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(ForkMarksTest, MemoryThatTheProgramKeepsFromForksIsNamed) {
  const auto& [mode, mark] = GetParam();
  PuppetRank puppet({"2", "2000", "0", mode});
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
  auto answer = Shadow(**injector, Request({{.variant = 0}}, 2));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->runs.at(0).ok);
  EXPECT_THAT(answer->runs.at(0).failure, HasSubstr(mark));
  ASSERT_TRUE((*injector)->Uninstall().ok());
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(2, 2000, end.passes));
}

INSTANTIATE_TEST_SUITE_P(AllMarks, ForkMarksTest,
                         ::testing::Values(std::pair("dontfork", "MADV_DONTFORK"),
                                           std::pair("wipeonfork", "MADV_WIPEONFORK")));

bool Lives(int32_t pid) {
  const auto stamp = ProcFs().Stamp(pid);
  return stamp.ok() && stamp->state != 'Z' && stamp->state != 'X';
}

TEST_F(RankInjectorTest, AShadowEndsWithItsRank) {
  constexpr int kRuns = 400;
  PuppetRank puppet({"2", "1000000", "0"});  // 24 MB a thread, some ms a run
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
  std::atomic<int32_t> shadow = 0;
  std::atomic<bool> over = false;
  std::thread killer([&] {
    while (!over && shadow == 0) {
      const std::vector<int32_t> children = puppet.Children();
      if (!children.empty()) shadow = children.front();
      std::this_thread::sleep_for(milliseconds(1));
    }
    if (shadow != 0) kill(puppet.pid(), SIGKILL);
  });
  bool ok = false;
  for (int tries = 0; tries < 20 && shadow == 0;
       ++tries)  // a team that others keep apart does not meet
    ok = (*injector)->RunShadow(Request(std::vector<RunSpec>(kRuns, {.variant = 0}), 2)).ok();
  over = true;
  killer.join();
  ASSERT_NE(shadow, 0) << "it was over before it was seen";
  EXPECT_FALSE(ok);
  bool lives = true;
  for (int i = 0; i < 2000 && lives; ++i) {
    lives = Lives(shadow);
    if (lives) std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_FALSE(lives) << "the shadow outlived its rank";
  EXPECT_TRUE((*injector)->Uninstall().ok()) << "there is nothing to take out";
  EXPECT_EQ(Journals(), 0u);
}

}  // namespace
}  // namespace perfd::agent
