#include "agent/pipeline/ranks/tracked_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/clock.h"
#include "tests/unit/procfs/fake_proc.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;
constexpr uint32_t kAlice = 4000001;
constexpr uint32_t kBob = 4000002;

class TrackedRanksTest : public testing::Test {
 protected:
  void Add(FakeProcess process) {
    if (process.uid == 1000) process.uid = kAlice;
    proc_.AddProcess(process);
  }
  static RankInfo Info(int32_t pid, int32_t rank = 0, uint64_t start_ticks = 100) {
    RankInfo info;
    info.pid = pid;
    info.uid = kAlice;
    info.start_ticks = start_ticks;
    info.rank = rank;
    return info;
  }
  absl::Status PutAndAdd(int32_t pid, int32_t rank = 0) {
    Add({.pid = pid});
    return ranks_.Add(Info(pid, rank), 1);
  }
  void Refresh() {
    ended_.clear();
    changed_.clear();
    ranks_.Refresh(read_ns_, &ended_, &changed_);
  }

  FakeProc proc_;
  ProcFs procfs_{proc_.root()};
  TrackedRanks ranks_{procfs_};
  std::vector<const TrackedProcess*> ended_;
  std::vector<const TrackedProcess*> changed_;
  int64_t read_ns_ = 0;  // samples up to then have been read
};

TEST_F(TrackedRanksTest, TimeInWhichSomebodyHeldItBackIsSummed) {
  ASSERT_TRUE(PutAndAdd(5).ok());
  ASSERT_TRUE(PutAndAdd(6, 1).ok());
  read_ns_ = 1'000;
  Refresh();
  EXPECT_TRUE(ranks_.SuspendedRanks().empty()) << "it may run, and does not";
  Add({.pid = 5, .state = 'T'});
  for (read_ns_ = 2'000; read_ns_ <= 4'000; read_ns_ += 1'000) Refresh();
  Add({.pid = 5});
  Refresh();
  const auto suspended = ranks_.SuspendedRanks();
  ASSERT_EQ(suspended.size(), 1u);
  EXPECT_EQ(suspended[0]->info.pid, 5);
  EXPECT_EQ(suspended[0]->suspended.ns, 3'000);
  EXPECT_EQ(suspended[0]->suspended.by, "SIGSTOP");
}

// Stopped for 150 ms in each second, and found so in one look of five: it has used its CPU all the same.
TEST_F(TrackedRanksTest, ShortSuspensionsAreSeenByThePartOfLooksThatFindThem) {
  ASSERT_TRUE(PutAndAdd(5).ok());
  for (uint64_t look = 1; look <= 10; ++look) {
    Add({.pid = 5, .user_ticks = 150 + 85 * look, .state = look % 5 == 0 ? 'T' : 'S'});
    read_ns_ += 1'000;
    Refresh();
  }
  ASSERT_EQ(ranks_.SuspendedRanks().size(), 1u);
  EXPECT_EQ(ranks_.SuspendedRanks()[0]->suspended.ns, 2'000);
}

TEST_F(TrackedRanksTest, TellsOnceOfAnEnd) {
  ASSERT_TRUE(PutAndAdd(5).ok());
  Refresh();
  EXPECT_TRUE(ended_.empty());
  EXPECT_EQ(ranks_.living(), 1);
  proc_.Remove(5);
  Refresh();
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0]->info.pid, 5);
  EXPECT_EQ(ranks_.living(), 0);
  Refresh();
  EXPECT_TRUE(ended_.empty());
  EXPECT_NE(ranks_.Find(5), nullptr) << "its last samples may still come";
  EXPECT_EQ(ranks_.infos().size(), 1u);
}

TEST_F(TrackedRanksTest, AThreadThatAloneBecomesSomeoneElseEndsTheRank) {
  ASSERT_TRUE(PutAndAdd(5).ok());
  const auto thread = [&](uint32_t uid) {
    const std::string ids = absl::StrCat(uid, "\t", uid, "\t", uid, "\t", uid, "\n");
    proc_.Write("5/task/6/status", absl::StrCat("Name:\tt\nState:\tR (x)\nTgid:\t5\nUid:\t", ids,
                                                "Gid:\t100\t100\t100\t100\n"));
  };
  thread(kAlice);
  Refresh();
  EXPECT_NE(ranks_.Find(5), nullptr);
  thread(kBob);
  Refresh();
  EXPECT_EQ(ranks_.Find(5), nullptr);
  ASSERT_EQ(changed_.size(), 1u);
  EXPECT_THAT(std::string(ChangedOwnerError(*changed_[0]).message()),
              HasSubstr("threads run with different rights"));
}

TEST_F(TrackedRanksTest, AProcessThatBecameSomeoneElsesIsHiddenAndToldOnce) {
  ASSERT_TRUE(PutAndAdd(5).ok());
  ASSERT_TRUE(PutAndAdd(6, 1).ok());
  Add({.pid = 5, .effective_uid = 0});
  Refresh();
  EXPECT_TRUE(ended_.empty());
  ASSERT_EQ(changed_.size(), 1u);
  EXPECT_THAT(std::string(ChangedOwnerError(*changed_[0]).message()),
              HasSubstr("rights of root (uid 0)"));
  EXPECT_EQ(ranks_.Find(5), nullptr);
  EXPECT_NE(ranks_.Find(6), nullptr);
  EXPECT_EQ(ranks_.living(), 1);
  Refresh();
  EXPECT_TRUE(changed_.empty());
  EXPECT_FALSE(ranks_.Add(Info(5), 2).ok()) << "and does not come back";
  Add({.pid = 6, .effective_gid = 0});
  std::vector<const TrackedProcess*> both;
  ranks_.Refresh(0, &both);
  ASSERT_EQ(both.size(), 1u);
  EXPECT_THAT(std::string(ChangedOwnerError(*both[0]).message()), HasSubstr("setgid"));
}

TEST_F(TrackedRanksTest, APrivilegedRequestersRankThatBecomesAnothersIsHidden) {
  TrackedRanks ranks(procfs_, true);
  Add({.pid = 5});
  ASSERT_TRUE(ranks.Add(Info(5), 1).ok());
  Add({.pid = 5, .uid = kBob});
  std::vector<const TrackedProcess*> changed;
  ranks.Refresh(0, &ended_, &changed);
  EXPECT_EQ(changed.size(), 1u);
  EXPECT_EQ(ranks.Find(5), nullptr);
}

TEST_F(TrackedRanksTest, AnExecLooksAtTheOwnerAtOnce) {
  ASSERT_TRUE(PutAndAdd(5).ok());
  Add({.pid = 5, .effective_uid = 0});
  TrackedProcess* process = ranks_.Find(5);
  ranks_.ReadMaps(*process, 1);
  EXPECT_NE(ranks_.Find(5), nullptr);
  ranks_.Exec(*process, 1, 1);
  EXPECT_EQ(ranks_.Find(5), nullptr);
  Refresh();
  EXPECT_EQ(changed_.size(), 1u);
}

TEST_F(TrackedRanksTest, AnExecOfTheSameOwnerIsAdmittedAnewAndNothingElseIs) {
  ASSERT_TRUE(PutAndAdd(5).ok());
  TrackedProcess* process = ranks_.Find(5);
  const Admission before = process->admission;
  proc_.SetExecutableHead(5, 2, 62);
  ranks_.Exec(*process, 1, 1);
  ASSERT_EQ(ranks_.Find(5), process);
  EXPECT_NE(process->admission, before);
  EXPECT_EQ(process->admission.rights, before.rights);
  const Admission second = process->admission;
  Add({.pid = 5, .effective_uid = 0});
  ranks_.Exec(*process, 2, 2);
  EXPECT_EQ(process->admission, second) << "what it has become was never admitted";
}

TEST_F(TrackedRanksTest, AddRefusesAnotherOwnerAndBorrowedRights) {
  Add({.pid = 5, .uid = kBob});
  EXPECT_TRUE(absl::IsPermissionDenied(ranks_.Add(Info(5), 1)));
  Add({.pid = 6, .effective_uid = 0});
  const absl::Status setuid = ranks_.Add(Info(6), 1);
  EXPECT_TRUE(absl::IsPermissionDenied(setuid));
  EXPECT_THAT(std::string(setuid.message()), HasSubstr("(setuid)"));
  EXPECT_TRUE(TrackedRanks(procfs_, true).Add(Info(6), 1).ok());
  Add({.pid = 7, .start_ticks = 101});
  EXPECT_TRUE(absl::IsNotFound(ranks_.Add(Info(7), 1))) << "another process of this pid";
}

TEST_F(TrackedRanksTest, ChildrenAreFollowedUnlessTheyHaveOtherRights) {
  ASSERT_TRUE(PutAndAdd(5, 3).ok());
  Add({.pid = 6, .start_ticks = 200});
  Add({.pid = 7, .effective_uid = 0});
  const TrackedProcess* child = ranks_.AddChild(5, 6, 1);
  ASSERT_NE(child, nullptr);
  EXPECT_EQ(child->helper_of, 5);
  EXPECT_EQ(child->info.rank, 3);
  EXPECT_EQ(ranks_.AddChild(5, 7, 1), nullptr);
  EXPECT_EQ(ranks_.living(), 1);
}

TEST_F(TrackedRanksTest, AForkReadLateDoesNotMakeARankAHelper) {
  ASSERT_TRUE(PutAndAdd(5, 0).ok());
  ASSERT_TRUE(PutAndAdd(6, 1).ok());
  const TrackedProcess* rank = ranks_.AddChild(5, 6, 1);
  ASSERT_NE(rank, nullptr);
  EXPECT_EQ(rank->helper_of, 0);
  EXPECT_EQ(rank->info.rank, 1);
}

// A window that closes and a look around refresh twice without a reading in between.
TEST_F(TrackedRanksTest, EndedHelpersAreKeptUntilTheirLastSamplesHaveBeenRead) {
  ASSERT_TRUE(PutAndAdd(5).ok());
  Add({.pid = 6});
  ASSERT_NE(ranks_.AddChild(5, 6, 1), nullptr);
  read_ns_ = 7 * kNsPerSecond;
  proc_.Remove(6);
  Refresh();
  ASSERT_EQ(ended_.size(), 1u);
  for (int i = 0; i < 5; ++i) Refresh();
  EXPECT_TRUE(ranks_.Contains(6)) << "nothing has been read since its end";
  read_ns_ += TrackedRanks::kKeepEndedNs;
  Refresh();
  EXPECT_TRUE(ranks_.Contains(6));
  read_ns_ += 1;
  Refresh();
  EXPECT_FALSE(ranks_.Contains(6)) << "a job may start helpers for ever";
  EXPECT_TRUE(ranks_.Contains(5)) << "a rank is never forgotten";
}

TEST_F(TrackedRanksTest, AChildThatEndedBeforeItsForkWasReadHasItsParentsMappings) {
  Add({.pid = 5});
  proc_.Write("5/maps", "1000-2000 r-xp 00000000 08:01 7 /app\n");
  ASSERT_TRUE(ranks_.Add(Info(5, 3), 1).ok());
  TrackedProcess* child = ranks_.AddChild(5, 8, 1);
  ASSERT_NE(child, nullptr);
  EXPECT_TRUE(child->helper_of != 0 && child->ended);
  EXPECT_EQ(child->info.rank, 3);
  EXPECT_NE(child->space.Find(0x1000), nullptr);
  Refresh();
  EXPECT_TRUE(ended_.empty()) << "nobody had heard of it";
  // Whose rights another program had cannot be asked any more.
  ranks_.Exec(*child, 9, 9);
  EXPECT_EQ(ranks_.Find(8), nullptr);
  read_ns_ = TrackedRanks::kKeepEndedNs + 1;
  Refresh();
  EXPECT_FALSE(ranks_.Contains(8));
}

TEST_F(TrackedRanksTest, AnEndedChildOfRootIsNotTakenOnTrust) {
  Add({.pid = 5, .uid = 0});
  RankInfo root = Info(5);
  root.uid = 0;
  ASSERT_TRUE(ranks_.Add(root, 1).ok());
  EXPECT_EQ(ranks_.AddChild(5, 8, 1), nullptr);
}

TEST_F(TrackedRanksTest, TheProgramOfASampleIsTheOneOfItsTime) {
  Add({.pid = 5});
  proc_.Write("5/maps", "1000-2000 r-xp 00000000 08:01 7 /old\n");
  ASSERT_TRUE(ranks_.Add(Info(5), 1).ok());
  TrackedProcess& process = *ranks_.Find(5);
  process.executable = "/old";
  proc_.Write("5/maps", "1000-2000 r-xp 00000000 08:01 8 /new\n");
  ranks_.Exec(process, 1000, 5000);
  process.executable = "/new";
  EXPECT_EQ(process.space.Find(0x1800, 999)->path, "/old");
  EXPECT_EQ(process.space.Find(0x1800, 1000)->path, "/new");
  EXPECT_EQ(ExecutableAt(process, 999), "/old");
  EXPECT_EQ(ExecutableAt(process, 1000), "/new");
}

TEST_F(TrackedRanksTest, ARankThatIsLeftEndsWithItsChildren) {
  ASSERT_TRUE(PutAndAdd(5).ok());
  ASSERT_TRUE(PutAndAdd(6).ok()) << "of another job, with the same number";
  Add({.pid = 8, .parent_pid = 5});
  ASSERT_NE(ranks_.AddChild(5, 8, 1), nullptr);
  EXPECT_EQ(ranks_.Leave(5), (std::vector<int32_t>{5, 8}));
  EXPECT_TRUE(ranks_.Leave(5).empty()) << "each once";
  EXPECT_EQ(ranks_.living(), 1);
  EXPECT_TRUE(ranks_.Knows(Info(5))) << "it is not added again";
  EXPECT_NE(ranks_.Find(5), nullptr) << "its last samples are still to be read";
  Add({.pid = 9, .parent_pid = 5});
  EXPECT_EQ(ranks_.AddChild(5, 9, 1), nullptr) << "a fork that was read late";
  EXPECT_FALSE(ranks_.ThreadsByRank().contains(5));
  EXPECT_TRUE(ranks_.ThreadsByRank().contains(6));
  EXPECT_EQ(ranks_.infos().size(), 2u);
  std::vector<const TrackedProcess*> ended;
  ranks_.Refresh(2, &ended);
  EXPECT_TRUE(ended.empty()) << "it has not ended, and is not told to have";
  Add({.pid = 11, .parent_pid = 6});
  EXPECT_NE(ranks_.AddChild(6, 11, 1), nullptr);
}

TEST_F(TrackedRanksTest, AReusedPidIsAnotherProcessAndBothAreTold) {
  ASSERT_TRUE(PutAndAdd(5).ok());
  EXPECT_TRUE(ranks_.Knows(Info(5)));
  EXPECT_FALSE(ranks_.Knows(Info(5, 0, 101)));
  Add({.pid = 5, .start_ticks = 101});
  ASSERT_TRUE(ranks_.Add(Info(5, 7, 101), 2).ok());
  EXPECT_EQ(ranks_.Find(5)->info.rank, 7);
  EXPECT_EQ(ranks_.infos().size(), 2u) << "the first one's samples are in the report";
  Refresh();
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0]->info.rank, 0);
  EXPECT_TRUE(ranks_.Lives(5)) << "the second one: its pid must not be removed from the source";
  EXPECT_EQ(ranks_.living(), 1);
}

TEST_F(TrackedRanksTest, TheMapsOfAStuckProcessAreNotRead) {
  const std::string line = "1000-2000 r-xp 00000000 08:01 7 /app\n";
  Add({.pid = 5, .state = 'D'});
  proc_.Write("5/maps", line);
  ASSERT_TRUE(ranks_.Add(Info(5), 1).ok());
  EXPECT_EQ(ranks_.Find(5)->space.Find(0x1000), nullptr);
  Add({.pid = 5, .state = 'R'});
  ranks_.ReadMaps(*ranks_.Find(5), kNsPerSecond + 1);
  EXPECT_NE(ranks_.Find(5)->space.Find(0x1000), nullptr);
}

struct SilentFiles final : SlowFiles {
  absl::StatusOr<std::string> Read(int32_t, const SlowRead& read) override {
    if (read.what == SlowRead::What::kIdentity && executable_answers) return ReadSlowFile(read);
    return absl::UnavailableError("does not answer");
  }
  bool executable_answers = true;
};

TEST_F(TrackedRanksTest, ARankWhoseMapsAreNotReadInTimeIsToldOfOnce) {
  const auto files = std::make_shared<SilentFiles>();
  const ProcFs procfs(proc_.root(), files);
  TrackedRanks ranks(procfs);
  Add({.pid = 5});
  ASSERT_TRUE(ranks.Add(Info(5), 1).ok());
  const auto silent = ranks.DrainSilent();
  ASSERT_EQ(silent.size(), 1u);
  EXPECT_EQ(silent[0].first.pid, 5);
  ranks.ReadMaps(*ranks.Find(5), kNsPerSecond + 1);
  EXPECT_TRUE(ranks.DrainSilent().empty());
  // The file of its program is not asked for by those who look often.
  files->executable_answers = false;
  std::vector<const TrackedProcess*> none;
  ranks.Refresh(0, &none);
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(ranks.Lives(5));
  Add({.pid = 6});
  EXPECT_TRUE(absl::IsUnavailable(ranks.Add(Info(6, 1), 1)));
}

TEST_F(TrackedRanksTest, TellsHowLongProcessesLivedAndWhatTheirThreadsGot) {
  ASSERT_TRUE(PutAndAdd(5, 2).ok());
  proc_.Write("5/task/5/schedstat", "123456989 45 9\n");
  proc_.Write("5/task/7/schedstat", "1000 30 1\n");
  read_ns_ = 1'001;
  Refresh();
  std::vector<ProcessTime> times = ranks_.DrainTimes();
  const ProcessTime expected{2, 5, false, 1'000, {{5, {200, 40}}, {7, {1000, 30}}}};
  EXPECT_THAT(times, testing::ElementsAre(expected)) << "since it was added";
  EXPECT_EQ(ranks_.DrainTimes().at(0).lived_ns, 0u);
  read_ns_ = 3'001;
  Refresh();
  times = ranks_.DrainTimes();
  ASSERT_EQ(times.size(), 1u);
  EXPECT_EQ(times[0].lived_ns, 2'000u);
  EXPECT_EQ(times[0].threads[5], ThreadTime{});
  proc_.Remove(5);
  read_ns_ = 4'001;
  Refresh();
  EXPECT_EQ(ranks_.DrainTimes().at(0).lived_ns, 500u) << "it ended at some time in between";
  read_ns_ = 6'001;
  Refresh();
  ASSERT_EQ(ranks_.DrainTimes().size(), 1u) << "samples of it may still be read";
}

TEST_F(TrackedRanksTest, TellsHowLongThreadsWaitedAndWhetherThatIsAll) {
  ASSERT_TRUE(PutAndAdd(5).ok());
  const auto look = [this] {
    ended_.clear();
    return ranks_.Refresh(++read_ns_, &ended_);
  };
  proc_.Write("5/task/5/schedstat", "123456989 45 9\n");
  proc_.Write("5/task/7/schedstat", "1000 30 1\n");
  CpuUse used = look();
  EXPECT_EQ(used.wait_ns, 70u);
  EXPECT_EQ(used.switches, 4u);
  EXPECT_EQ(used.appeared, 1u);
  EXPECT_EQ(used.ended, 0u);
  EXPECT_FALSE(used.unknown);
  std::filesystem::remove_all(proc_.root() + "/5/task/7");
  used = look();
  EXPECT_EQ(used.wait_ns, 0u);
  EXPECT_EQ(used.ended, 1u) << "nobody knows what it waited at last";
  proc_.Write("5/task/5/schedstat", "0 0 0\n");
  EXPECT_TRUE(look().unknown) << "a kernel that does not count";
  proc_.Write("5/task/5/schedstat", "nonsense\n");
  EXPECT_TRUE(look().unknown);
  proc_.Remove(5);
  EXPECT_GE(look().ended, 1u) << "the process";
}

TEST_F(TrackedRanksTest, ARankThatEndsBeforeItIsSeenAgainHasLivedAllTheSame) {
  ASSERT_TRUE(PutAndAdd(5, 2).ok());
  proc_.Remove(5);
  read_ns_ = 1'001;
  Refresh();
  EXPECT_EQ(ranks_.DrainTimes().at(0).lived_ns, 500u);
}

}  // namespace
}  // namespace perfd::agent
