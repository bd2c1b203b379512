// Where a run of a job has begun and ended, and what retention leaves of it.
#include "core/base/clock.h"
#include "daemon/store/profile_table.h"
#include "daemon/store/schema.h"
#include "tests/unit/daemon/store/hook_table_fixture.h"

namespace perfd::daemon {
namespace {

class HookMarksTest : public HookTableTest {
 protected:
  using Part = HookRun::Part;

  HookRecord BeginOn(const std::string& job, const std::vector<std::string>& nodes,
                     bool profile = true) {
    HookAdmission admission = Admission(job, 100, profile);
    admission.node = nodes.front();
    const HookRecord record = Admit(admission);
    for (size_t i = 1; i < nodes.size(); ++i)
      EXPECT_TRUE(store_->BeginHookJob(record.id, nodes[i]).ok());
    return record;
  }
  void EndOn(const HookRecord& record, const std::string& node, int64_t now_ns) {
    ASSERT_TRUE(store_->EndHookJob(record.id, node, now_ns).ok());
    ASSERT_TRUE(store_->Flush().ok());
  }
  HookRun Run(const HookRecord& record, const std::string& node = "") {
    const auto run = store_->HookRunOf(record.job, node);
    EXPECT_TRUE(run.ok() && run->has_value()) << run.status();
    return run->value_or(HookRun());
  }
};

TEST_F(HookMarksTest, ARunIsOverWhenEachNodeThatBeganHasEnded) {
  const HookRecord record = BeginOn("1", {"n1", "n2"});
  EndOn(record, "n1", 300);
  EXPECT_EQ(Run(record).record.ended_unix_ns, 0);
  EXPECT_EQ(Run(record, "n1").part, Part::kEnded);
  EXPECT_EQ(Run(record, "n1").part_ended_unix_ns, 300);
  EXPECT_EQ(Run(record, "n2").part, Part::kBegun);
  EXPECT_EQ(Run(record, "n3").part, Part::kNone);
  EndOn(record, "n3", 310);  // where it never began
  EndOn(record, "n1", 320);  // said again
  EXPECT_EQ(Run(record).record.ended_unix_ns, 0);
  EndOn(record, "n2", 330);
  EXPECT_EQ(Run(record).record.ended_unix_ns, 330);
  EXPECT_EQ(Run(record, "n1").part, Part::kNone);  // nobody asks any more
}

TEST_F(HookMarksTest, MarksSurviveARestart) {
  const HookRecord record = BeginOn("1", {"n1", "n2"});
  EndOn(record, "n1", 300);
  ASSERT_TRUE(Open().ok());
  const auto waits = *store_->HookWaits();
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_FALSE(waits[0].ended);
  EXPECT_EQ(waits[0].ended_nodes, std::vector<std::string>{"n1"});
  EXPECT_EQ(waits[0].job.job, "1");
  EXPECT_EQ(waits[0].job.scheduler, "PBS");
  EndOn(record, "n2", 310);
  EXPECT_TRUE(store_->HookWaits()->front().ended);
  EXPECT_TRUE(store_->HookWaits()->front().ended_nodes.empty());
}

TEST_F(HookMarksTest, ANodeThatBeginsAgainHasNotEnded) {
  const HookRecord record = BeginOn("1", {"n1"});
  EndOn(record, "n1", 300);
  EXPECT_EQ(Run(record).record.ended_unix_ns, 300);
  ASSERT_TRUE(store_->BeginHookJob(record.id, "n2").ok());
  ASSERT_TRUE(store_->Flush().ok());
  EXPECT_EQ(Run(record, "n2").part, Part::kBegun);
  EXPECT_EQ(Run(record).record.ended_unix_ns, 0);
  EndOn(record, "n2", 310);
  EXPECT_EQ(Run(record).record.ended_unix_ns, 310);
}

TEST_F(HookMarksTest, WhoNamesNoNodeSpeaksForTheWholeJob) {
  const HookRecord record = BeginOn("1", {"n1", "n2"});
  EndOn(record, "", 300);
  EXPECT_EQ(Run(record).record.ended_unix_ns, 300);
}

// Nobody said how many nodes such a run has: the end of one node is that node's only.
TEST_F(HookMarksTest, ARunThatWasBegunForNoNodeInParticularIsEndedLikeThat) {
  const HookRecord record = BeginOn("1", {""});
  EXPECT_EQ(Run(record).part, Part::kBegun);
  EXPECT_EQ(Run(record).nodes_ended_unix_ns, 0);
  EndOn(record, "n1", 300);
  EXPECT_EQ(Run(record).record.ended_unix_ns, 0);
  EXPECT_EQ(Run(record, "n1").part, Part::kEnded);
  EXPECT_EQ(Run(record).nodes_ended_unix_ns, 300);
  ASSERT_TRUE(store_->BeginHookJob(record.id, "n2").ok());
  ASSERT_TRUE(store_->Flush().ok());
  EXPECT_EQ(Run(record).nodes_ended_unix_ns, 0);
  EndOn(record, "n2", 310);
  EXPECT_EQ(Run(record).nodes_ended_unix_ns, 310);
  EXPECT_EQ(Run(record).record.ended_unix_ns, 0);
  EndOn(record, "", 320);
  EXPECT_EQ(Run(record).record.ended_unix_ns, 320);
  EXPECT_EQ(Run(record).part, Part::kNone);
}

TEST_F(HookMarksTest, ARestartKnowsWhichNodesHaveEndedWhatNobodyNamed) {
  const HookRecord record = BeginOn("1", {""});
  EndOn(record, "n1", 300);
  ASSERT_TRUE(Open().ok());
  const auto waits = *store_->HookWaits();
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_FALSE(waits[0].ended);
  EXPECT_EQ(waits[0].ended_nodes, std::vector<std::string>{"n1"});
  EXPECT_EQ(waits[0].wait_ns, 7);
}

TEST_F(HookMarksTest, WhoMayOnlyEndWhatItBeganWritesNothingElse) {
  const auto end = [this](const HookRecord& record, const std::string& node, int64_t now_ns) {
    ASSERT_TRUE(store_->EndHookJob(record.id, node, now_ns, true).ok());
    ASSERT_TRUE(store_->Flush().ok());
  };
  const HookRecord record = BeginOn("1", {"n1"});
  end(record, "n9", 300);
  EXPECT_EQ(Run(record, "n9").part, Part::kNone);
  EXPECT_EQ(Run(record).record.ended_unix_ns, 0);
  end(record, "n1", 310);
  EXPECT_EQ(Run(record).record.ended_unix_ns, 310);
  end(record, "n1", 320);  // said again
  EXPECT_EQ(Run(record).record.ended_unix_ns, 310);
  // Its nodes have not begun it themselves.
  const HookRecord nameless = BeginOn("2", {""});
  end(nameless, "n1", 330);
  EXPECT_EQ(Run(nameless, "n1").part, Part::kEnded);
  EXPECT_EQ(Run(nameless).record.ended_unix_ns, 0);
}

TEST_F(HookMarksTest, ShortAndFullNamesAreOfOneNode) {
  HookRecord record = BeginOn("1", {"n1.site"});
  EXPECT_EQ(Run(record, "n1").part, Part::kBegun);
  EXPECT_EQ(Run(record, "n1.other").part, Part::kNone);
  ASSERT_TRUE(store_->BeginHookJob(record.id, "n1").ok());  // said again
  EndOn(record, "n1", 300);
  EXPECT_EQ(Run(record).record.ended_unix_ns, 300);
  record = BeginOn("2", {"n1"});
  EndOn(record, "n1.site", 310);
  EXPECT_EQ(Run(record).record.ended_unix_ns, 310);
  record = BeginOn("3", {"n10.site", "n1-a.site", "n"});
  EndOn(record, "n1", 320);
  for (const char* node : {"n10.site", "n1-a.site", "n"})
    EXPECT_EQ(Run(record, node).part, Part::kBegun) << node;
}

TEST_F(HookMarksTest, AShortNameThatMayMeanTwoNodesMeansNeither) {
  const HookRecord record = BeginOn("1", {"n1.a", "n1.b"});
  EndOn(record, "n1.b", 300);
  EndOn(record, "n1.b", 310);  // said again
  EXPECT_EQ(Run(record, "n1.a").part, Part::kBegun);
  EndOn(record, "n1", 320);  // the one that is left
  EXPECT_EQ(Run(record).record.ended_unix_ns, 320);
  const HookRecord both = BeginOn("2", {"n1.a", "n1.b"});
  ASSERT_TRUE(store_->Flush().ok());
  EXPECT_EQ(Run(both, "n1").part, Part::kNone);
  EndOn(both, "n1", 330);
  EXPECT_EQ(Run(both, "n1.a").part, Part::kBegun);
  EXPECT_EQ(Run(both, "n1.b").part, Part::kBegun);
}

TEST_F(HookMarksTest, ARunThatIsReplacedTakesItsMarksWithIt) {
  const HookRecord first = BeginOn("1", {"n1", "n2"});
  HookAdmission second = Admission("1", 200);
  second.node = "n3";
  second.replaces = first.id;
  const HookRecord record = Admit(second);
  EXPECT_EQ(Run(record, "n1").part, Part::kNone);
  EndOn(record, "n3", 300);
  EXPECT_EQ(Run(record).record.ended_unix_ns, 300);
}

class HookRetentionTest : public HookTableTest {
 protected:
  void SetUp() override {
    auto db = Database::Open(folder_ + "/plain.db");
    ASSERT_TRUE(db.ok() && Migrate(*db).ok());
    db_ = std::make_unique<Database>(*std::move(db));
  }
  HookRecord AdmitPlain(const std::string& job, int64_t seen_ns, bool profile) {
    HookAdmission admission = Admission(job, seen_ns, profile);
    admission.node = "n1";
    const auto record = AdmitJob(*db_, admission);
    EXPECT_TRUE(record.ok()) << record.status();
    return record.value_or(HookRecord());
  }
  std::vector<std::string> Left() {
    std::vector<std::string> jobs;
    const auto records = *ReadJobs(*db_, std::nullopt, 100);
    for (const HookRecord& record : records) jobs.push_back(record.job.job);
    return jobs;
  }
  void Finish(const HookRecord& record) {
    ProfileStatus status = Profile(1000, ProfileState::kDone);
    status.id = record.answer.profile_id;
    ASSERT_TRUE(UpdateProfile(*db_, status).ok());
  }

  std::unique_ptr<Database> db_;
};

// However many jobs came since: else the quota of the day would be given back, and an end would not be known.
TEST_F(HookRetentionTest, WhatTheQuotaCountsAndWhatStillRunsStays) {
  constexpr int64_t kDay = 86'400 * kNsPerSecond;
  Finish(AdmitPlain("old", 100, true));
  AdmitPlain("runs", 100, true);
  Finish(AdmitPlain("today", 101, true));
  AdmitPlain("plain", 101, false);
  AdmitPlain("new", 100 + kDay, false);
  ASSERT_TRUE(ApplyHookRetention(*db_, 1).ok());
  EXPECT_EQ(Left(), (std::vector<std::string>{"new", "today", "runs"}));
  EXPECT_EQ(*db_->QueryInt("SELECT count(*) FROM hook_node"), 3);
}

TEST_F(HookRetentionTest, TheMarksOfTheOldestGo) {
  const HookRecord first = AdmitPlain("1", 100, false);
  const HookRecord second = AdmitPlain("2", 100, false);
  ASSERT_TRUE(BeginNode(*db_, second.id, "n2").ok());
  ASSERT_TRUE(ApplyHookRetention(*db_, 100, 3).ok());
  EXPECT_EQ(*db_->QueryInt("SELECT count(*) FROM hook_node"), 3);
  ASSERT_TRUE(ApplyHookRetention(*db_, 100, 2).ok());
  EXPECT_EQ(*db_->QueryInt("SELECT count(*) FROM hook_node"), 2);
  EXPECT_EQ((*FindRun(*db_, first.job, "n1"))->part, HookRun::Part::kNone);
  EXPECT_EQ((*FindRun(*db_, second.job, "n2"))->part, HookRun::Part::kBegun);
  EXPECT_EQ(Left().size(), 2u);
}

}  // namespace
}  // namespace perfd::daemon
