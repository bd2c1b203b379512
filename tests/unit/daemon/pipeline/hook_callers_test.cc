// What the certificate of one node can do to a run of many, and runs that were begun for no node in particular.
#include "tests/unit/daemon/pipeline/job_admission_fixture.h"

namespace perfd::daemon {
namespace {

using D = HookDecision;

class HookCallersTest : public JobAdmissionTest {
 protected:
  void SetUp() override {
    JobAdmissionTest::SetUp();
    UsePolicy("every: 1");
  }
  HookAnswer BeginBy(const std::string& node, const HookJob& job) {
    const auto answer = pipeline_->hooks().Begin({node}, job);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or(HookAnswer());
  }
  HookAnswer EndBy(const std::string& node, const HookJob& job) {
    const auto answer = pipeline_->hooks().End({node}, job);
    EXPECT_TRUE(answer.ok()) << answer.status();
    EXPECT_TRUE(store_->Flush().ok());
    return answer.value_or(HookAnswer());
  }
  static HookJob OfUser(HookJob job, uint32_t uid) {
    job.uid = uid;
    return job;
  }
  HookRun Run(const HookJob& job, const std::string& node = "") {
    EXPECT_TRUE(store_->Flush().ok());
    const auto run = store_->HookRunOf(job, node);
    EXPECT_TRUE(run.ok() && run->has_value()) << run.status();
    return run->value_or(HookRun());
  }
};

// It sends the list of nodes that it is compared with.
TEST_F(HookCallersTest, ANodeDoesNotReplaceTheRunOfOthers) {
  Connect("n9");
  Connect("n1");
  const HookAnswer first = BeginBy("n1", Job("5", "n[1-2]"));
  EndBy("n9", Job("5", "n9"));
  EXPECT_EQ(Run(Job("5"), "n9").part, HookRun::Part::kNone);
  clock_.Pass(JobAdmission::kSameRunNs + 1);
  EXPECT_EQ(BeginBy("n9", Job("5", "n9")), first);
  EndBy("n9", Job("5", "n9"));
  EXPECT_EQ(Run(Job("5"), "n9").part, HookRun::Part::kEnded);  // now it is one of those that began
  clock_.Pass(JobAdmission::kSameRunNs + 1);
  EXPECT_EQ(BeginBy("n9", Job("5", "n9")), first);
  EXPECT_EQ(store_->Profiles({})->size(), 1u);
  EXPECT_TRUE(link_->stops.empty());
  EndBy("n9", Job("5", "n9"));
  EndBy("n1", Job("5", "n[1-2]"));
  EXPECT_NE(Run(Job("5")).record.ended_unix_ns, 0);
  clock_.Pass(JobAdmission::kSameRunNs + 1);
  EXPECT_NE(BeginBy("n9", Job("5", "n9")), first);  // the run is over
}

TEST_F(HookCallersTest, ANodeThatNamesAnotherUserChangesNothing) {
  Connect("n1");
  const HookAnswer first = BeginBy("n1", Job("5", "n[1-2]"));
  EXPECT_EQ(BeginBy("n9", OfUser(Job("5", "n9"), 2000)), first);
  EXPECT_EQ(Run(Job("5"), "n9").part, HookRun::Part::kNone);
  EXPECT_EQ(EndBy("n1", OfUser(Job("5", "n1"), 2000)).decision, D::kNone);
  EXPECT_EQ(Calls(HookResult::kUnknown), 1u);
  EXPECT_EQ(Run(Job("5"), "n1").part, HookRun::Part::kBegun);
  EXPECT_TRUE(link_->stops.empty());
  EXPECT_EQ(EndBy("n1", Job("5", "n[1-2]")), first);
  EXPECT_EQ(link_->stops.size(), 1u);
  EXPECT_EQ(Run(Job("5")).record.ended_unix_ns, clock_.UnixNs());
  // Long after, the number is another user's.
  clock_.Pass(JobAdmission::kSameRunNs + 1);
  EXPECT_NE(BeginBy("n9", OfUser(Job("5", "n9"), 2000)), first);
}

// Whether restarts are counted was said when the run began.
TEST_F(HookCallersTest, WhoLeavesTheSchedulerOutDoesNotShortenTheTime) {
  Connect("n1");
  HookJob job = Job("5", "n1");
  job.scheduler = "Slurm";
  const HookAnswer first = BeginBy("n1", job);
  EndBy("n1", job);
  job.scheduler.clear();
  clock_.Pass(JobAdmission::kSameCountedRunNs);
  EXPECT_EQ(BeginBy("n1", job), first);
  EndBy("n1", job);
  clock_.Pass(JobAdmission::kSameCountedRunNs + 1);
  EXPECT_NE(BeginBy("n1", job), first);
}

TEST_F(HookCallersTest, AnAgentOfAnotherUserIsNotSentTheProfile) {
  Connect("n1", 2000, true);
  Connect("n2");
  const std::string id = BeginBy("n1", Job("5", "n[1-2]")).profile_id;
  ASSERT_EQ(Status(id).nodes.size(), 1u);
  EXPECT_EQ(Status(id).nodes[0].phase, NodeProgress::Phase::kDisconnected);
}

TEST_F(HookCallersTest, WhatWasBegunForNoNodeInParticularGoesOnWhereItHasNotEnded) {
  Connect("b");
  Connect("a");
  const HookAnswer first = Begin(Job("5", "a,b"));
  End(JobOn("a", "5"));
  EXPECT_EQ(link_->stops.size(), 1u);
  EXPECT_EQ(Run(Job("5")).record.ended_unix_ns, 0);
  Restart();
  Connect("a");
  EXPECT_EQ(link_->stops.size(), 1u);
  Connect("b");
  EXPECT_TRUE(link_->stops.empty());
  clock_.Pass(JobAdmission::kSameRunNs);
  EXPECT_EQ(Begin(Job("5", "a,b")), first);
  clock_.Pass(1);
  EXPECT_NE(Begin(Job("5", "a,b")), first);  // nobody who had begun is left
}

// A second call that names no node is not the end of its run either.
TEST_F(HookCallersTest, WhoRepeatsItForNoNodeInParticularIsWaitedForToo) {
  Connect("a");
  const HookAnswer first = Begin(JobOn("a", "5", "a,b"));
  EXPECT_EQ(Begin(Job("5", "a,b")), first);
  End(JobOn("a", "5", "a,b"));
  EXPECT_EQ(Run(Job("5")).record.ended_unix_ns, 0);
  End(Job("5", "a,b"));
  EXPECT_NE(Run(Job("5")).record.ended_unix_ns, 0);
  EXPECT_EQ(Begin(Job("5", "a,b")), first);  // late: it is over all the same
  EXPECT_NE(Run(Job("5")).record.ended_unix_ns, 0);
}

TEST_F(HookCallersTest, ShortAndFullNamesEndTheSamePart) {
  Connect("n1");
  Begin(JobOn("n1.site", "5", "n1"));
  End(JobOn("n1", "5", "n1"));
  EXPECT_EQ(link_->stops.size(), 1u);
  EXPECT_NE(Run(Job("5")).record.ended_unix_ns, 0);
}

}  // namespace
}  // namespace perfd::daemon
