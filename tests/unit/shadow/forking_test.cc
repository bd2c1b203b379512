// May a rank be forked, at what cost, and what must its shadow not touch.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "agent/shadow/forking/fault_cost.h"
#include "agent/shadow/forking/memory_walk.h"
#include "agent/shadow/forking/preconditions.h"
#include "agent/shadow/forking/process_files.h"
#include "agent/shadow/forking/shadow_cost.h"
#include "agent/shadow/protect_list.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMb = 1 << 20;

RankHazards Harmless() {
  RankHazards h;
  h.pid = 7;
  h.status.state = 'R';
  h.memory.anonymous = 100 * kMb;
  h.node.available = 4096 * kMb;
  h.kernel = {6, 1};
  h.files = {{0, "/dev/null", O_RDWR}, {3, "/scratch/data", O_RDWR}};
  return h;
}

void ExpectRefused(const RankHazards& hazards, const char* because) {
  absl::Status status = JudgeHazards(hazards);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << because;
  EXPECT_THAT(std::string(status.message()), HasSubstr(because));
}

TEST(PreconditionsTest, OrdinaryRankMayBeForked) {
  EXPECT_TRUE(JudgeHazards(Harmless()).ok());
}

TEST(PreconditionsTest, EveryHazardIsNamed) {
  RankHazards h = Harmless();
  h.status.tracer_pid = 5;
  ExpectRefused(h, "traces it");
  h = Harmless();
  h.status.seccomp_mode = 2;
  ExpectRefused(h, "seccomp");
  h = Harmless();
  h.cgroup.oom_group = true;
  ExpectRefused(h, "memory.oom.group");
  h = Harmless();
  h.cgroup.oom_waits = true;
  ExpectRefused(h, "oom_kill_disable");
  h = Harmless();
  h.clone_waiter = 9;
  ExpectRefused(h, "thread 9 waits for any child");
  h = Harmless();
  h.files.push_back({4, "/scratch/x", O_RDONLY | O_DIRECT});
  ExpectRefused(h, "direct I/O");
  h = Harmless();
  h.files.push_back({4, "anon_inode:[userfaultfd]", 0});
  ExpectRefused(h, "page faults");
  for (const char* device : {"/dev/nvidia0", "/dev/knem", "/dev/kfd", "/dev/dri/renderD128",
                             "/dev/xpmem", "/dev/accel/accel0"}) {
    h = Harmless();
    h.files.push_back({4, device, O_RDWR});
    ExpectRefused(h, device);
    h = Harmless();
    h.maps.emplace_back().path = device;  // closed again
    ExpectRefused(h, device);
  }
  h = Harmless();
  h.maps.emplace_back().path = "/[aio]";
  ExpectRefused(h, "asynchronous I/O");
}

TEST(PreconditionsTest, PrivateHugePagesNeedAPool) {
  RankHazards h = Harmless();
  h.memory.private_hugetlb = 10 * kMb;
  h.free_hugetlb = 10 * kMb;
  EXPECT_TRUE(JudgeHazards(h).ok());
  h.free_hugetlb -= 1;
  ExpectRefused(h, "hugetlb");
}

TEST(PreconditionsTest, PinnedMemoryNeedsAKernelThatCopiesIt) {
  RankHazards h = Harmless();
  h.memory.pinned = kMb;
  EXPECT_TRUE(JudgeHazards(h).ok());
  h.kernel = {5, 12};
  EXPECT_TRUE(JudgeHazards(h).ok());
  h.kernel = {5, 11};
  ExpectRefused(h, "pinned");
}

TEST(PreconditionsTest, ThreadsOfTheJobItselfMustFindRoom) {
  RankHazards h = Harmless();
  h.shadow_tasks = 4;
  h.tasks = {4 + kSpareTasks, "pids.max of its control group allows 100"};
  EXPECT_TRUE(JudgeHazards(h).ok());
  h.shadow_tasks = 5;
  ExpectRefused(h, "pids.max of its control group");
}

TEST(PreconditionsTest, HeadroomOfNodeAndControlGroup) {
  RankHazards h = Harmless();
  const uint64_t need = ShadowHeadroom(h.memory);
  h.node.available = need;
  h.cgroup.limit = 1000 * kMb;
  h.cgroup.current = 1000 * kMb - need;
  EXPECT_TRUE(JudgeHazards(h).ok());
  h.cgroup.current += 1;
  ExpectRefused(h, "control group");
  h = Harmless();
  h.node.available = need - 1;
  ExpectRefused(h, "the node has");
  // Room for three shadows, and not for four.
  h.node.available = 4 * need - 1;
  EXPECT_TRUE(JudgeMemory(h.memory, h.node, {}, 0, 3).ok());
  EXPECT_THAT(std::string(JudgeMemory(h.memory, h.node, {}, 0, 4).message()),
              HasSubstr("4 ranks at the same time"));
  EXPECT_FALSE(JudgeMemory(h.memory, h.node, {}, need, 2).ok());
  h = Harmless();
  h.node.overcommit = 2;
  h.memory.accounted = 500 * kMb;  // touched or not
  h.node.commit_limit = 1000 * kMb;
  h.node.committed = 500 * kMb - need;
  EXPECT_TRUE(JudgeHazards(h).ok());
  h.node.committed += 1;
  ExpectRefused(h, "overcommit");
}

TEST(PreconditionsTest, MappingsThatTakeMuchOfAStopAreRefusedWithTheFigures) {
  constexpr int64_t kStopNs = 20'000'000;
  EXPECT_TRUE(JudgeMappings(7, {5000, true, kStopNs / 4}, kStopNs).ok());
  EXPECT_THAT(std::string(JudgeMappings(7, {3000, false, 11'000'000}, kStopNs).message()),
              HasSubstr("it has more than 3000 mappings: to read so many takes 11.0 ms"));
  const absl::Status refused = JudgeMappings(7, {20000, true, 12'300'000}, kStopNs);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("it has 20000 mappings"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("takes 12.3 ms"));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("may be 5.0 ms, a quarter of the longest stop of 20.0 ms "
                        "(budget.stop)"));
  EXPECT_TRUE(CheckMappings(ProcFs(), getpid(), 50 * kStopNs).ok());
  EXPECT_FALSE(CheckMappings(ProcFs(), getpid(), 1).ok());
}

TEST(PreconditionsTest, TheFirstMappingsAreWholeLines) {
  const auto maps = ProcFs().Maps(getpid());
  ASSERT_TRUE(maps.ok());
  bool all = true;
  const auto first = ProcFs().FirstMaps(getpid(), 1000, &all);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(all);
  ASSERT_GE(first->size(), 2u);
  EXPECT_LT(first->size(), maps->size());
  EXPECT_TRUE(std::equal(first->begin(), first->end() - 1, maps->begin()));
  EXPECT_GE(ProcFs().FirstMaps(getpid(), 1 << 24, &all)->size(), maps->size());
  EXPECT_TRUE(all);
}

TEST(PreconditionsTest, RealProcessIsRead) {
  const size_t untouched = 256 * kMb;
  void* memory =
      mmap(nullptr, untouched, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto facts = ReadMemoryFacts(getpid());
  ASSERT_TRUE(facts.ok()) << facts.status();
  auto hazards = ReadHazards(getpid(), *facts);
  ASSERT_TRUE(hazards.ok()) << hazards.status();
  EXPECT_GT(hazards->memory.resident, 0u);
  EXPECT_GE(hazards->memory.accounted, untouched);
  EXPECT_LT(hazards->memory.private_dirty, untouched);
  EXPECT_GT(hazards->node.available, 0u);
  EXPECT_FALSE(hazards->maps.empty());
  EXPECT_EQ(ReadNamespacePid(getpid())->inner, getpid());
  EXPECT_GT(*ReadMinorFaults(getpid()), 0u);
  munmap(memory, untouched);
}

TEST(PageCostsTest, AreMeasuredHere) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  ASSERT_TRUE(TellPageCosts(ends[1]));
  PageCosts costs;
  ASSERT_EQ(recv(ends[0], &costs, sizeof(costs), MSG_DONTWAIT), ssize_t{sizeof(costs)});
  EXPECT_GE(costs.rewrite_ns, 20);
  EXPECT_LT(costs.rewrite_ns, 200'000) << "15 us on the slowest machine so far";
  EXPECT_GE(costs.copy_ns, 100) << "a page of 4 KB is copied";
  close(ends[0]);
  close(ends[1]);
}

TEST(PageCostsTest, WithoutAnAnswerTheyAreWhatIsUsual) {
  EXPECT_FALSE(AskPageCosts("/nonexistent/program").has_value());
  EXPECT_FALSE(AskPageCosts("/bin/true").has_value());
  EXPECT_EQ(CurrentPageCosts("").rewrite_ns, kUsualFaultNs);
}

TEST(ShadowCostTest, PagesCostWhatTheyCostHere) {
  MemoryFacts facts;
  facts.anonymous = 400 * kMb;
  const ShadowCost cheap({.rewrite_ns = 600, .copy_ns = 1000});
  const ShadowCost dear({.rewrite_ns = 3000, .copy_ns = 4000});
  EXPECT_EQ(cheap.LaterFaultNs(facts) * 5, dear.LaterFaultNs(facts));
  EXPECT_EQ(cheap.CopyNsPerMb(), 256'000);
  EXPECT_EQ(dear.CopyNsPerMb(), 4 * 256'000);
}

TEST(ShadowCostTest, WhatTheFirstShadowTellsOfLaterFaultsTakesThePlaceOfTheGuess) {
  MemoryFacts facts;
  facts.anonymous = 1024 * kMb;
  ShadowCost cost({.rewrite_ns = 1000, .copy_ns = 1000});
  cost.LearnLaterFaults(facts, 4096);
  EXPECT_NEAR(static_cast<double>(cost.LaterFaultNs(facts)), 4096e3, 10e3);
  cost.LearnLaterFaults(facts, 8192);
  EXPECT_NEAR(static_cast<double>(cost.LaterFaultNs(facts)), 6144e3, 10e3);
}

TEST(MemoryWalkTest, LittleIsNoChangeAndIsCorrected) {
  const MemoryCounts then{
      .anonymous = 1000 * kMb, .hugetlb = 2 * kMb, .page_tables = 1, .pinned = 2};
  MemoryCounts now = then;
  now.anonymous = 1020 * kMb;
  EXPECT_TRUE(SaysTheSame(then, now));
  now.anonymous = 980 * kMb;
  EXPECT_TRUE(SaysTheSame(then, now));
  now.anonymous = 979 * kMb;
  EXPECT_FALSE(SaysTheSame(then, now)) << "more than a fiftieth";
  EXPECT_TRUE(SaysTheSame({.anonymous = 1 * kMb}, {.anonymous = 9 * kMb}));
  EXPECT_FALSE(SaysTheSame({.anonymous = 1 * kMb}, {.anonymous = 10 * kMb})) << "more than 8 MB";
  now = then;
  now.hugetlb = 0;
  EXPECT_FALSE(SaysTheSame(then, now));

  now = {.anonymous = 990 * kMb, .hugetlb = 2 * kMb, .page_tables = 3, .pinned = 4};
  const MemoryFacts facts{
      .resident = 1100 * kMb, .private_dirty = 5 * kMb, .anonymous = 1001 * kMb, .huge = 995 * kMb};
  const MemoryFacts corrected = Corrected(facts, then, now);
  EXPECT_EQ(corrected.resident, 1090 * kMb);
  EXPECT_EQ(corrected.anonymous, 991 * kMb);
  EXPECT_EQ(corrected.private_dirty, 0u) << "not below nothing";
  EXPECT_EQ(corrected.huge, 991 * kMb) << "no more than there is";
  EXPECT_EQ(corrected.page_tables, 3u);
  EXPECT_EQ(corrected.pinned, 4u);
}

TEST(MemoryWalkTest, WalksAgainOnlyWhereMemoryHasChanged) {
  MemoryWalk probe(getpid());
  const auto first = probe.Facts();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(probe.walks(), 1u);
  ASSERT_TRUE(probe.Facts().ok());
  EXPECT_EQ(probe.walks(), 1u);
  const std::vector<char> more(64 * kMb, 1);
  const auto second = probe.Facts();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(probe.walks(), 2u);
  EXPECT_GT(second->anonymous, first->anonymous + 56 * kMb);
  EXPECT_EQ(more.back(), 1);
}

TEST(ProcessFilesTest, HostileLinesAreSkipped) {
  auto lines = ParseKbLines(
      "Rss:   12 kB\nBad\nName: a b\nHuge: 99999999999999999999 kB\nTop: 18014398509481983 kB\n:: "
      "1 kB\n");
  EXPECT_EQ(lines["Rss"], 12u << 10);
  EXPECT_EQ(lines.count("Huge"), 0u);
  EXPECT_EQ(lines["Top"], 18014398509481983u << 10);
  EXPECT_EQ(ParseKbLines("T: 18014398509481984 kB").count("T"), 0u);  // would overflow
}

TEST(ProcessFilesTest, InnermostNumberOfNameSpaces) {
  auto pid = ParseNamespacePid("Name:\tx\nNSpid:\t4711\t12\t1\n");
  ASSERT_TRUE(pid.ok());
  EXPECT_EQ(pid->inner, 1);
  EXPECT_EQ(pid->levels, 3);
  EXPECT_FALSE(ParseNamespacePid("NSpid:\n").ok());
  EXPECT_FALSE(ParseNamespacePid("Pid: 4\n").ok());
}

// A child of this test by a raw clone, as a shadow is; it waits for the end of the pipe.
class ClonedChild {
 public:
  explicit ClonedChild(uint64_t exit_signal, const char* program = nullptr) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, program == nullptr ? O_CLOEXEC : 0), 0);
    pid_ = static_cast<int32_t>(syscall(SYS_clone, exit_signal, 0, 0, 0, 0));
    if (pid_ == 0) {
      close(ends[1]);
      dup2(ends[0], STDIN_FILENO);
      if (program != nullptr) execl(program, program, nullptr);
      char byte = 0;
      while (read(STDIN_FILENO, &byte, 1) < 0) {
      }
      _exit(0);
    }
    close(ends[0]);
    write_end_ = ends[1];
  }
  ~ClonedChild() {
    close(write_end_);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, __WALL);
  }
  int32_t pid() const { return pid_; }

 private:
  int32_t pid_ = 0, write_end_ = -1;
};

TEST(ProcessFilesTest, OnlyAForkOfTheRankIsItsShadow) {
  const auto rank = ReadAdmission(ProcFs(), getpid());
  ASSERT_TRUE(rank.ok()) << rank.status();
  const ClonedChild shadow(0), ordinary(SIGCHLD), program(0, "/bin/cat");
  EXPECT_TRUE(CheckShadow(*rank, getpid(), shadow.pid()).ok());
  EXPECT_EQ(CheckShadow(*rank, getpid(), ordinary.pid()).code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(CheckShadow(*rank, getppid(), shadow.pid()).code(),
            absl::StatusCode::kPermissionDenied);
  const ClonedChild ended(0);
  ASSERT_EQ(kill(ended.pid(), SIGKILL), 0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(ended.pid()), &info, WEXITED | WNOWAIT | __WALL), 0);
  EXPECT_TRUE(absl::IsNotFound(CheckShadow(*rank, getpid(), ended.pid()))) << "nobody's fault";
  Admission other = *rank;
  other.rights.capabilities ^= 1;
  EXPECT_FALSE(CheckShadow(other, getpid(), shadow.pid()).ok());
  // Between fork and exec it is one.
  absl::Status executed;
  for (int i = 0; i < 1000 && executed.ok(); ++i) {
    absl::SleepFor(absl::Milliseconds(5));
    executed = CheckShadow(*rank, getpid(), program.pid());
  }
  EXPECT_EQ(executed.code(), absl::StatusCode::kPermissionDenied) << executed;
}

// docs/benchmarks/constants.md#kforkbasens: `injection_bench --part memory` on a quiet machine, 2026-11-21. Memory in MB, fork in ms.
TEST(ShadowCostTest, FirstForkIsNotUnderratedAndNotMuchOverrated) {
  struct Measured {
    uint64_t mb;
    bool huge;
    double ms;
  };
  constexpr Measured kTable[] = {{64, false, 1.6},  {64, true, 0.25},  {256, false, 3.2},
                                 {256, true, 0.35}, {1024, false, 10}, {1024, true, 0.73},
                                 {4096, false, 35}, {4096, true, 2.1}};
  for (const Measured& row : kTable) {
    MemoryFacts facts;
    constexpr uint64_t kRest = 2 * kMb;  // libraries, stacks: 4K pages
    facts.anonymous = row.mb * kMb + kRest;
    facts.huge = row.huge ? row.mb * kMb : 0;
    const double said = static_cast<double>(ShadowCost().ForkNs(facts)) / 1e6;
    EXPECT_GE(said, row.ms) << row.mb << " MB, huge " << row.huge;
    EXPECT_LE(said, 1.5 * row.ms) << row.mb << " MB, huge " << row.huge;
  }
}

TEST(ShadowCostTest, LearnsWhatForksCost) {
  ShadowCost cost;
  MemoryFacts facts;
  facts.anonymous = 1024 * kMb;
  const int64_t first = cost.ForkNs(facts);
  for (int i = 0; i < 20; ++i) cost.LearnFork(facts, 2 * first);
  EXPECT_NEAR(static_cast<double>(cost.ForkNs(facts)), 2.0 * static_cast<double>(first),
              0.01 * static_cast<double>(first));
  MemoryFacts pinned = facts;
  pinned.pinned = 100 * kMb;  // copied while it forks
  EXPECT_GT(cost.ForkNs(pinned), cost.ForkNs(facts) + 20'000'000);
  MemoryFacts huge = facts;
  huge.huge = huge.anonymous;
  EXPECT_LT(cost.ForkNs(huge), cost.ForkNs(facts) / 10);
  for (int i = 0; i < 20; ++i) cost.LearnLaterFaults(facts, 0);
  EXPECT_LT(cost.LaterFaultNs(facts), 1000);
  cost.LearnLaterFaults(facts, ~uint64_t{0});  // more than there are pages: all of them
  EXPECT_LE(cost.LaterFaultNs(facts), 262144 * 2700);
}

MapEntry Map(uint64_t start, uint64_t end, bool writable, bool shared, std::string path) {
  MapEntry map;
  map.start = start;
  map.end = end;
  map.readable = true;
  map.writable = writable;
  map.shared = shared;
  map.path = std::move(path);
  return map;
}

TEST(ProtectListTest, SharedAndDevicesButNotOurs) {
  auto list = ProtectList(
      {Map(0x1000, 0x2000, true, false, "[heap]"), Map(0x2000, 0x3000, true, true, "/dev/shm/a"),
       Map(0x3000, 0x4000, true, true, "/SYSV0001"), Map(0x4000, 0x5000, false, true, "/lib/x"),
       Map(0x5000, 0x6000, true, true, "/dev/zero"), Map(0x6000, 0x7000, true, true, "/dev/zero"),
       Map(0x7000, 0x8000, false, true, "/dev/infiniband/uverbs0"),
       Map(0x8000, 0x9000, true, false, "/dev/nvidia0")},
      {0x6000, 0x7000});
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->size(), 3u);
  EXPECT_EQ(list->at(0).address, 0x2000u);
  EXPECT_EQ(list->at(0).bytes, 0x2000u);  // neighbours merged
  EXPECT_EQ(list->at(0).protection, static_cast<uint32_t>(PROT_READ));
  EXPECT_EQ(list->at(1).address, 0x5000u);
  EXPECT_EQ(list->at(1).bytes, 0x1000u);
  EXPECT_EQ(list->at(2).address, 0x7000u);
  EXPECT_EQ(list->at(2).bytes, 0x2000u);
  EXPECT_EQ(list->at(2).protection, static_cast<uint32_t>(PROT_NONE));
}

TEST(ProtectListTest, WhatAForkSeesDifferentlyIsInaccessible) {
  const auto list =
      ProtectList({Map(0x1000, 0x2000, true, false, "")}, {},
                  std::vector<ForkedDifferently>{{{0x1000, 0x2000}, WhyProtected::kEmptyInForks}});
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->size(), 1u);
  EXPECT_EQ(list->at(0).address, 0x1000u);
  EXPECT_EQ(list->at(0).bytes, 0x1000u);
  EXPECT_EQ(list->at(0).protection, static_cast<uint32_t>(PROT_NONE));
}

TEST(PreconditionsTest, WhatIsADevice) {
  const auto is_device = [](const char* path) {
    return IsDevice(Map(0x1000, 0x2000, true, true, path));
  };
  for (const char* path : {"/dev/nvidia0", "/dev/infiniband/uverbs0", "/dmabuf:scanout",
                           "/sys/devices/pci0000:00/0000:00:02.0/resource0",
                           "anon_inode:[vfio-device]", "anon_inode:dmabuf", "anon_inode:i915.gem"})
    EXPECT_TRUE(is_device(path)) << path;
  for (const char* path :
       {"", "[heap]", "/dev/shm/a", "/dev/zero", "/dev/hugepages/a", "/home/sys/a", "/system",
        "anon_inode:[perf_event]", "anon_inode:[io_uring]", "anon_inode:bpf-map"})
    EXPECT_FALSE(is_device(path)) << path;
}

TEST(ProtectListTest, OnlyPrivateWritableMemoryIsRestored) {
  const std::vector<MapEntry> maps = {
      Map(0x1000, 0x3000, true, false, ""), Map(0x3000, 0x4000, true, true, "/dev/shm/a"),
      Map(0x4000, 0x5000, false, false, "/lib/x"), Map(0x6000, 0x7000, true, false, "")};
  // From inside the first over everything into the last; then one that is nowhere.
  auto clipped = ClipRestores(maps, {{0x2800, 0x3900, 1, 0}, {0x9000, 0x10, kSharedOut, 0}});
  ASSERT_EQ(clipped.size(), 2u);
  EXPECT_EQ(clipped[0].address, 0x2800u);
  EXPECT_EQ(clipped[0].bytes, 0x800u);
  EXPECT_EQ(clipped[0].owner, 1u);
  EXPECT_EQ(clipped[1].address, 0x6000u);
  EXPECT_EQ(clipped[1].bytes, 0x100u);
}

TEST(ProtectListTest, AllThatIsMappedCountsButThePageForOldCalls) {
  EXPECT_EQ(MappedBytes({Map(0x1000, 0x3000, true, false, ""), Map(0x4000, 0x5000, false, true, ""),
                         Map(0xffffffffff600000, 0xffffffffff601000, false, false, "[vsyscall]")}),
            0x3000u);
}

TEST(ProtectListTest, AsManyAsAPlanHolds) {
  std::vector<MapEntry> maps;
  for (uint64_t i = 0; i < kMaxProtects; ++i)
    maps.push_back(Map(0x10000 * i, 0x10000 * i + 0x1000, true, true, "/s"));
  EXPECT_TRUE(ProtectList(maps, {}).ok());
  maps.push_back(Map(0x7f0000000000, 0x7f0000001000, true, true, "/s"));
  EXPECT_EQ(ProtectList(maps, {}).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace perfd::agent
