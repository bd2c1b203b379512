#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "agent/discover/rank_finder.h"
#include "tests/unit/procfs/fake_proc.h"

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const Requester kAlice{.uid = 4000001, .name = "alice", .privileged = false};
constexpr uint64_t kTicks = 100;  // per second

// A node on which the processes of `works` use their CPUs while somebody looks.
class TreeScanTest : public testing::Test {
 protected:
  struct FixedClock final : Clock {
    int64_t MonotonicNs() const override { return now_ns; }
    int64_t UnixNs() const override { return now_ns; }
    int64_t now_ns = 1;
  };

  void Add(FakeProcess process, const std::string& executable) {
    if (process.uid == 1000) process.uid = kAlice.uid;
    process.executable = executable;
    if (process.arguments == std::vector<std::string>{"app"}) process.arguments = {executable};
    process.user_ticks = 0;
    if (process.state == 'R') process.state = 'S';
    processes_[process.pid] = process;
    proc_.AddProcess(process);
    Write(process.pid, 0);
    proc_.SetExecutableHead(process.pid, ELFCLASS64, EM_X86_64);
  }
  void Remove(int32_t pid) {
    processes_.erase(pid);
    proc_.Remove(pid);
  }
  void Write(int32_t pid, uint64_t cpu_ns) {
    const FakeProcess& process = processes_.at(pid);
    proc_.Write(absl::StrCat(pid, "/task/", pid, "/schedstat"), absl::StrCat(cpu_ns, " 0 1\n"));
    proc_.Write(absl::StrCat(pid, "/wchan"), "do_wait");
    proc_.Write(absl::StrCat(pid, "/stat"),
                absl::StrCat(pid, " (x) S ", process.parent_pid, " 0 0 0 0 0 0 0 0 0 ",
                             cpu_ns * kTicks / 1'000'000'000, " 0 0 0 0 0 0 0 ",
                             process.start_ticks, " 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0\n"));
  }
  void Pass(int64_t ns) {
    clock_.now_ns += ns;
    for (const int32_t pid : works_) {
      if (!processes_.contains(pid)) continue;
      cpu_ns_[pid] += static_cast<uint64_t>(ns);
      Write(pid, cpu_ns_[pid]);
    }
  }
  absl::StatusOr<Discovery> Scan(std::vector<int32_t> pids, bool tree) {
    TargetSpec target;
    target.pids = std::move(pids);
    target.tree = tree;
    const auto sleep = [this](absl::Duration time) {
      ++probes_;
      Pass(absl::ToInt64Nanoseconds(time));
    };
    const RankFinder finder(ProcFs(proc_.root()), "node1", absl::ZeroDuration(), sleep);
    return finder.Find(target, {}, kAlice, &scan_);
  }
  static std::vector<int32_t> PidsOf(const absl::StatusOr<Discovery>& found) {
    std::vector<int32_t> pids;
    if (!found.ok()) return pids;
    for (const RankInfo& rank : found->ranks) pids.push_back(rank.pid);
    return pids;
  }
  static std::vector<int32_t> LaunchersOf(const absl::StatusOr<Discovery>& found) {
    std::vector<int32_t> pids;
    if (!found.ok()) return pids;
    for (const LauncherNote& note : found->launchers) {
      for (const NamedProcess& process : note.launchers) pids.push_back(process.pid);
    }
    return pids;
  }
  static FakeProcess Rank(int32_t pid, int32_t parent, int32_t rank) {
    return {.pid = pid,
            .environment = {{"PMIX_RANK", absl::StrCat(rank)}, {"PMIX_NAMESPACE", "77"}},
            .parent_pid = parent};
  }

  FakeProc proc_;
  FixedClock clock_;
  ProcessScan scan_{clock_, true};
  std::map<int32_t, FakeProcess> processes_;
  std::map<int32_t, uint64_t> cpu_ns_;
  std::set<int32_t> works_;
  int probes_ = 0;
};

class NamedLaunchersTest : public TreeScanTest {
 protected:
  NamedLaunchersTest() { scan_ = ProcessScan(clock_); }
};

TEST_F(NamedLaunchersTest, ALauncherIsRefusedAndTheChildThatWorksIsNamed) {
  Add({.pid = 10}, "/usr/bin/timeout");
  Add({.pid = 11, .parent_pid = 10}, "/bin/sh");
  Add({.pid = 12, .parent_pid = 11}, "/opt/heat");
  works_ = {12};
  const auto found = Scan({10}, false);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->ranks, IsEmpty());
  ASSERT_EQ(found->launchers.size(), 1u);
  const LauncherNote expected{.disposition = LauncherNote::Disposition::kRefused,
                              .launchers = {{10, "timeout"}},
                              .launcher_count = 1,
                              .working = {{12, "heat"}},
                              .working_count = 1};
  EXPECT_EQ(found->launchers[0], expected);
  EXPECT_EQ(probes_, 1);
}

TEST_F(NamedLaunchersTest, ALauncherIsCalledWhatItWasCalled) {
  Add({.pid = 10, .arguments = {"/usr/bin/mpirun", "-n", "1"}}, "/usr/bin/orterun");
  Add(Rank(11, 10, 0), "/opt/heat");
  Add({.pid = 20, .arguments = {"-bash"}}, "/bin/bash");
  Add({.pid = 21, .parent_pid = 20}, "/opt/x");
  works_ = {21};
  const auto found = Scan({10, 20}, false);
  ASSERT_EQ(found->launchers.size(), 2u);
  EXPECT_EQ(found->launchers[0].launchers[0].command, "mpirun");
  EXPECT_EQ(found->launchers[1].launchers[0].command, "bash");
}

TEST_F(NamedLaunchersTest, WithoutChildrenNobodyIsLookedAt) {
  Add({.pid = 10}, "/usr/bin/timeout");
  EXPECT_THAT(PidsOf(Scan({10}, false)), ElementsAre(10));
  EXPECT_EQ(probes_, 0);
}

TEST_F(NamedLaunchersTest, WhoWorksItselfIsMeasuredAtOnce) {
  Add({.pid = 10}, "/opt/driver");
  Add({.pid = 11, .parent_pid = 10}, "/opt/helper");
  works_ = {10, 11};
  EXPECT_THAT(PidsOf(Scan({10}, false)), ElementsAre(10));
  EXPECT_EQ(probes_, 1);
}

TEST_F(NamedLaunchersTest, WhoseChildrenRestIsMeasuredAfterAWhile) {
  Add({.pid = 10}, "/opt/driver");
  Add({.pid = 11, .parent_pid = 10}, "/opt/helper");
  EXPECT_THAT(PidsOf(Scan({10}, false)), ElementsAre(10));
  EXPECT_EQ(probes_, kMostProbes);
}

TEST_F(NamedLaunchersTest, BesideItsRanksALauncherIsLeftOut) {
  Add({.pid = 10}, "/usr/bin/mpirun");
  for (int rank = 0; rank < 2; ++rank) Add(Rank(11 + rank, 10, rank), "/opt/heat");
  const auto found = Scan({10, 11, 12}, false);
  EXPECT_THAT(PidsOf(found), ElementsAre(11, 12));
  ASSERT_EQ(found->launchers.size(), 1u);
  EXPECT_EQ(found->launchers[0].disposition, LauncherNote::Disposition::kLeftOut);
}

// What it runs is not told to others.
TEST_F(NamedLaunchersTest, ChildrenOfOthersAreNotNamed) {
  Add({.pid = 10}, "/opt/starter");
  Add({.pid = 11, .uid = 4000002, .parent_pid = 10}, "/opt/secret");
  works_ = {11};
  const auto found = Scan({10}, false);
  EXPECT_THAT(PidsOf(found), ElementsAre(10));
  EXPECT_THAT(found->launchers, IsEmpty());
}

TEST_F(TreeScanTest, AllProgramsBelowAreRanksAndLaunchersAreTold) {
  Add({.pid = 10}, "/usr/bin/time");
  Add({.pid = 11, .parent_pid = 10}, "/bin/sh");
  Add({.pid = 12, .parent_pid = 11}, "/opt/a");
  Add({.pid = 13, .parent_pid = 11}, "/opt/b");
  Add({.pid = 14}, "/opt/other");
  works_ = {12};
  const auto found = Scan({10}, true);
  EXPECT_THAT(PidsOf(found), ElementsAre(12, 13));
  EXPECT_EQ(found->ranks[1].rank, 1);
  EXPECT_THAT(LaunchersOf(found), ElementsAre(10, 11));
  EXPECT_EQ(found->launchers[0].disposition, LauncherNote::Disposition::kLeftOut);
  EXPECT_THAT(LaunchersOf(Scan({10}, true)), IsEmpty()) << "told once";
}

TEST_F(TreeScanTest, WithRanksOnlyTheyCount) {
  Add({.pid = 9}, "/bin/bash");
  Add({.pid = 8, .parent_pid = 9}, "/opt/monitor");
  Add({.pid = 10, .parent_pid = 9}, "/usr/bin/mpirun");
  for (int rank = 0; rank < 2; ++rank) Add(Rank(21 - rank, 10, rank), "/opt/heat");
  const auto found = Scan({9}, true);
  EXPECT_THAT(PidsOf(found), ElementsAre(21, 20)) << "by rank";
}

TEST_F(TreeScanTest, TheNextProgramOfAShellJoins) {
  Add({.pid = 10}, "/bin/sh");
  Add({.pid = 11, .parent_pid = 10}, "/opt/x");
  works_ = {11, 12};
  EXPECT_THAT(PidsOf(Scan({10}, true)), ElementsAre(11));
  Remove(11);
  Pass(2 * kNsPerSecond);
  EXPECT_THAT(PidsOf(Scan({10}, true)), IsEmpty()) << "the shell between two programs is no rank";
  EXPECT_TRUE(scan_.tree().lives());
  Add({.pid = 12, .parent_pid = 10}, "/opt/y");
  Pass(2 * kNsPerSecond);
  const auto found = Scan({10}, true);
  EXPECT_THAT(PidsOf(found), ElementsAre(12));
  EXPECT_EQ(found->ranks[0].rank, 0) << "goes on under the number of the one that ended";
  Remove(10);
  Remove(12);
  Pass(2 * kNsPerSecond);
  EXPECT_FALSE(Scan({10}, true).ok());
  EXPECT_FALSE(scan_.tree().lives());
}

TEST_F(TreeScanTest, WhoWasInTheTreeStaysWhenItsParentEnds) {
  Add({.pid = 10}, "/bin/sh");
  Add({.pid = 11, .parent_pid = 10}, "/opt/x");
  EXPECT_THAT(PidsOf(Scan({10}, true)), ElementsAre(11));
  Remove(10);
  processes_[11].parent_pid = 1;
  Write(11, 0);
  Add({.pid = 12, .parent_pid = 11}, "/opt/z");
  EXPECT_THAT(PidsOf(Scan({10}, true)), UnorderedElementsAre(11, 12));
}

TEST_F(TreeScanTest, APidThatIsReusedIsNotInTheTree) {
  Add({.pid = 10}, "/bin/sh");
  Add({.pid = 11, .parent_pid = 10}, "/opt/x");
  EXPECT_THAT(PidsOf(Scan({10}, true)), ElementsAre(11));
  Remove(10);
  Add({.pid = 10, .start_ticks = 999}, "/opt/another");
  Add({.pid = 15, .parent_pid = 10}, "/opt/below");
  EXPECT_THAT(PidsOf(Scan({10}, true)), ElementsAre(11));
}

TEST_F(TreeScanTest, AShellThatWorksItselfIsARank) {
  Add({.pid = 10}, "/bin/bash");
  Add({.pid = 11, .parent_pid = 10}, "/opt/x");
  works_ = {10};
  EXPECT_THAT(PidsOf(Scan({10}, true)), ElementsAre(10, 11));
}

TEST_F(TreeScanTest, AShellAloneIsMeasured) {
  Add({.pid = 10}, "/bin/sh");
  EXPECT_THAT(PidsOf(Scan({10}, true)), ElementsAre(10));
  EXPECT_EQ(probes_, 0);
}

TEST_F(TreeScanTest, AProgramThatOnlyWaitsIsALauncherByWhatItDoes) {
  Add({.pid = 10}, "/opt/driver");
  Add({.pid = 11, .parent_pid = 10}, "/opt/x");
  works_ = {11};
  const auto found = Scan({10}, true);
  EXPECT_THAT(PidsOf(found), ElementsAre(11));
  EXPECT_THAT(LaunchersOf(found), ElementsAre(10));
}

TEST_F(TreeScanTest, ASetuidProgramBelowIsRefusedAndNamed) {
  Add({.pid = 10}, "/bin/sh");
  Add({.pid = 11, .effective_uid = 0, .parent_pid = 10}, "/usr/bin/passwd");
  Add({.pid = 12, .parent_pid = 10}, "/opt/x");
  works_ = {12};
  const auto found = Scan({10}, true);
  EXPECT_THAT(PidsOf(found), ElementsAre(12));
  ASSERT_EQ(found->rejected.size(), 1u);
  EXPECT_EQ(found->rejected[0].pid, 11);
  EXPECT_TRUE(absl::IsPermissionDenied(found->rejected[0].reason));
}

// Else --pid 1 would be everything.
TEST_F(TreeScanTest, BelowAProcessOfOthersNothingIsLookedAt) {
  Add({.pid = 2, .uid = 4000002}, "/sbin/init");
  Add({.pid = 11, .parent_pid = 2}, "/opt/x");
  const auto found = Scan({2}, true);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->ranks, IsEmpty());
  ASSERT_EQ(found->rejected.size(), 1u);
  EXPECT_TRUE(absl::IsPermissionDenied(found->rejected[0].reason));
}

TEST_F(TreeScanTest, ALauncherWithNothingBelowIsRefused) {
  Add({.pid = 10}, "/usr/bin/mpirun");
  const auto found = Scan({10}, true);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->ranks, IsEmpty());
  ASSERT_EQ(found->launchers.size(), 1u);
  EXPECT_EQ(found->launchers[0].disposition, LauncherNote::Disposition::kRefused);
}

}  // namespace
}  // namespace perfd::agent
