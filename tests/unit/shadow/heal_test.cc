// HealRank and HealAll: by the journal, as a later agent does.
#include <gmock/gmock.h>

#include "agent/shadow/journal.h"
#include "agent/shadow/rank_injector.h"
#include "tests/unit/shadow/injected_rank.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class HealTest : public InjectedRankTest {
 protected:
  HealTest() : directory_(absl::StrCat(::testing::TempDir(), "/heal-", getpid())) {
    std::filesystem::remove_all(directory_);
    journal_ = *Journal::Make(directory_);
    std::memset(region_, 0, 64);  // the journal knows, the rank does not
  }
  ~HealTest() override { std::filesystem::remove_all(directory_); }

  InjectorOptions Options() {
    InjectorOptions options;
    options.tracer = tracer_.get();
    options.journal = &*journal_;
    options.audit = [this](AuditEntry entry) { audit_.push_back(std::move(entry)); };
    return options;
  }
  // As a profile knows it, before a test changes what the journal says.
  RankInfo Rank() const {
    RankInfo rank;
    rank.pid = pid_;
    rank.start_ticks = injection_.start_ticks;
    return rank;
  }
  void WriteJournal() { ASSERT_TRUE(journal_->Write(injection_).ok()); }
  std::vector<Injection> Journals() const {
    std::vector<std::string> damaged;
    return journal_->ReadAll(&damaged);
  }

  const std::string directory_;
  std::optional<Journal> journal_;
  std::vector<AuditEntry> audit_;
};

TEST_F(HealTest, TakesOutWhatTheJournalNames) {
  StartRank();
  WriteJournal();
  StartTracer({});
  const HealReport report = HealRank(pid_, Options());
  EXPECT_TRUE(report.status.ok()) << report.status;
  EXPECT_EQ(report.pid, pid_);
  EXPECT_THAT(report.done, HasSubstr("restored 2 loops"));
  EXPECT_EQ(TextAt(0x10), kOriginal);
  EXPECT_THAT(Journals(), IsEmpty());
  ASSERT_THAT(audit_, SizeIs(1));
  EXPECT_EQ(audit_[0].action, "heal");
  EXPECT_EQ(audit_[0].outcome, "ok");
  EXPECT_EQ(audit_[0].pid, pid_);
  EXPECT_GE(audit_[0].pause_ns, 2000);
  EXPECT_GT(audit_[0].unix_ns, 0);
}

TEST_F(HealTest, AgainThereIsNothing) {
  StartRank();
  StartTracer({});
  const HealReport report = HealRank(pid_, Options());
  EXPECT_TRUE(report.status.ok());
  EXPECT_EQ(report.done, "nothing was injected");
  EXPECT_THAT(audit_, IsEmpty());
}

TEST_F(HealTest, ARegionThatCannotBeReadIsNotNothing) {
  std::memcpy(region_, &kShadowMagic, sizeof(kShadowMagic));
  StartRank();
  StartTracer({});
  const HealReport report = HealRank(pid_, Options());
  EXPECT_EQ(report.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(report.status.message()), HasSubstr("another version"));
}

TEST_F(HealTest, TheJournalStaysUntilTheRankIsHealed) {
  StartRank();
  WriteJournal();
  StartTracer({"gone"});  // says so, but the process is there
  const HealReport report = HealRank(pid_, Options());
  EXPECT_FALSE(report.status.ok());
  EXPECT_THAT(Journals(), SizeIs(1));
  ASSERT_THAT(audit_, SizeIs(1));
  EXPECT_EQ(audit_[0].outcome, "gone");
}

TEST_F(HealTest, JournalsOfTheDeadAreRemoved) {
  StartRank();
  WriteJournal();
  StartTracer({});
  Kill();
  const std::vector<HealReport> reports = HealAll(Options());
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_TRUE(reports[0].status.ok());
  EXPECT_EQ(reports[0].done, "the process has ended");
  EXPECT_THAT(Journals(), IsEmpty());
  EXPECT_THAT(audit_, IsEmpty());  // nothing was altered
}

TEST_F(HealTest, ARankThatDoesNotAnswerIsNotTouchedAndKeepsItsJournal) {
  StartRank();
  WriteJournal();
  StartTracer({});
  InjectorOptions options = Options();
  options.answers = [](int32_t) { return absl::UnavailableError("does not answer"); };
  const std::vector<HealReport> reports = HealAll(options);
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_TRUE(absl::IsUnavailable(reports[0].status)) << reports[0].status;
  EXPECT_FALSE(HealBefore(Rank(), options).ok());
  EXPECT_NE(TextAt(0x10), kOriginal);
  EXPECT_THAT(Journals(), SizeIs(1));
  EXPECT_TRUE(HealBefore(Rank(), Options()).ok()) << "later";
  EXPECT_EQ(TextAt(0x10), kOriginal);
}

TEST_F(HealTest, AllRanksAndEveryDamagedJournalAreReported) {
  StartRank();
  WriteJournal();
  injection_.start_ticks += 1;  // an earlier process under the same pid
  WriteJournal();
  std::ofstream(directory_ + "/8-8.injection") << "half";
  StartTracer({});
  const std::vector<HealReport> reports = HealAll(Options());
  ASSERT_THAT(reports, SizeIs(3));
  EXPECT_THAT(std::string(reports[2].status.message()), HasSubstr("8-8.injection"));
  EXPECT_THAT(std::string(reports[2].status.message()), HasSubstr("heal its process by its pid"));
  EXPECT_THAT(Journals(), IsEmpty());
}

TEST_F(HealTest, OnlyTheRankThatWasNamed) {
  StartRank();
  injection_.sites.clear();
  WriteJournal();
  injection_.pid = 1;
  WriteJournal();
  StartTracer({});
  EXPECT_EQ(HealRank(pid_, Options()).done, "nothing of ours was left in it");
  ASSERT_THAT(Journals(), SizeIs(1));
  EXPECT_EQ(Journals()[0].pid, 1);
}

TEST_F(HealTest, WithoutATracerNothingIsHealed) {
  StartRank();
  WriteJournal();
  const HealReport report = HealRank(pid_, Options());
  EXPECT_EQ(report.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Journals(), SizeIs(1));
}

TEST_F(HealTest, WhenTimeIsUpTheOthersKeepTheirJournals) {
  StartRank();
  WriteJournal();
  StartTracer({});
  InjectorOptions options = Options();
  options.cancelled = [] { return true; };
  const std::vector<HealReport> reports = HealAll(options);
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_TRUE(absl::IsCancelled(reports[0].status));
  EXPECT_THAT(Journals(), SizeIs(1));
  EXPECT_NE(TextAt(0x10), kOriginal);
}

TEST_F(HealTest, ARankIsHealedBeforeItIsAltered) {
  StartRank();
  WriteJournal();
  StartTracer({});
  const RankInfo rank = Rank();
  EXPECT_TRUE(HealBefore(rank, Options()).ok());
  EXPECT_EQ(TextAt(0x10), kOriginal);
  EXPECT_THAT(Journals(), IsEmpty());
  ASSERT_THAT(audit_, SizeIs(1));
  EXPECT_EQ(audit_[0].action, "heal");
  EXPECT_TRUE(HealBefore(rank, Options()).ok());
  EXPECT_THAT(audit_, SizeIs(1));  // nothing to do
}

TEST_F(HealTest, AJournalThatOthersMayWriteChangesNothing) {
  StartRank();
  WriteJournal();
  const std::string path =
      absl::StrCat(directory_, "/", pid_, "-", injection_.start_ticks, ".injection");
  std::filesystem::permissions(path, std::filesystem::perms(0666));
  StartTracer({});
  const absl::Status status = HealBefore(Rank(), Options());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not believed"));
  const std::vector<HealReport> reports = HealAll(Options());
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_THAT(std::string(reports[0].status.message()), HasSubstr("can be written by others"));
  EXPECT_NE(TextAt(0x10), kOriginal);
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_THAT(audit_, IsEmpty());
}

TEST_F(HealTest, AnotherProcessUnderThePidIsNotHealedForIt) {
  StartRank();
  const RankInfo rank = Rank();
  injection_.start_ticks += 1;
  WriteJournal();
  StartTracer({});
  EXPECT_TRUE(HealBefore(rank, Options()).ok());
  EXPECT_NE(TextAt(0x10), kOriginal);
  EXPECT_THAT(Journals(), SizeIs(1));
}

TEST_F(HealTest, WhatCannotBeTakenOutIsNotAltered) {
  StartRank();
  WriteJournal();
  StartTracer({"gone"});
  const RankInfo rank = Rank();
  const absl::Status status = HealBefore(rank, Options());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot be taken out"));
  InjectorOptions rehearsal = Options();
  rehearsal.tracer = nullptr;
  EXPECT_THAT(std::string(HealBefore(rank, rehearsal).message()), HasSubstr("perf-agent heal"));
}

TEST_F(HealTest, WhatAnotherAgentMayBeDoingIsLeftAlone) {
  std::memcpy(region_, &kShadowMagic, sizeof(kShadowMagic));
  StartRank();
  StartTracer({});
  const RankInfo rank = Rank();
  const absl::Status status = HealBefore(rank, Options());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("another agent"));
  EXPECT_NE(TextAt(0x10), kOriginal);
}

}  // namespace
}  // namespace perfd::agent
