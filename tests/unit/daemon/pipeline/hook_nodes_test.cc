// One run of a job on many nodes: when it is over, who may speak for whom, and which nodes its profile has.
#include "tests/unit/daemon/pipeline/job_admission_fixture.h"

namespace perfd::daemon {
namespace {

using D = HookDecision;

TEST_F(JobAdmissionTest, TheEndOfOneNodeIsNotTheEndOfTheRun) {
  UsePolicy("every: 1");
  Connect("a");
  Connect("b");
  const HookAnswer first = Begin(JobOn("a", "5", "a,b"));
  EXPECT_EQ(Begin(JobOn("b", "5", "a,b")), first);
  End(JobOn("a", "5", "a,b"));
  ASSERT_TRUE(store_->Flush().ok());
  clock_.Pass(24 * 3600 * kNsPerSecond);
  EXPECT_EQ(Begin(JobOn("b", "5", "a,b")), first);  // slurmd was restarted
  EXPECT_EQ(Begin(JobOn("c", "5", "a,b")), first);  // begins late
  EXPECT_EQ(store_->Profiles({})->size(), 1u);
  for (const char* node : {"b", "c"}) End(JobOn(node, "5", "a,b"));
  ASSERT_TRUE(store_->Flush().ok());
  clock_.Pass(JobAdmission::kSameRunNs + 1);
  EXPECT_NE(Begin(JobOn("b", "5", "a,b")), first);  // every node that had begun has ended
}

TEST_F(JobAdmissionTest, ANodeThatBeginsLongAfterItsEndBeginsAnotherRun) {
  UsePolicy("every: 1");
  Connect("a");
  const HookAnswer first = Begin(JobOn("a", "5", "a,b"));
  Begin(JobOn("b", "5", "a,b"));  // it dies, and its epilog never comes
  End(JobOn("a", "5", "a,b"));
  ASSERT_TRUE(store_->Flush().ok());
  clock_.Pass(JobAdmission::kSameRunNs);
  EXPECT_EQ(Begin(JobOn("a", "5", "a,b")), first);
  End(JobOn("a", "5", "a,b"));
  ASSERT_TRUE(store_->Flush().ok());
  clock_.Pass(JobAdmission::kSameRunNs + 1);
  EXPECT_NE(Begin(JobOn("a", "5", "a,b")), first);
}

TEST_F(JobAdmissionTest, WhereRestartsAreCountedALateNodeIsOfTheSameRun) {
  UsePolicy("every: 1");
  Connect("a");
  HookJob job = JobOn("a", "5", "a,b");
  job.scheduler = "Slurm";
  const HookAnswer first = Begin(job);
  End(job);
  ASSERT_TRUE(store_->Flush().ok());
  clock_.Pass(JobAdmission::kSameCountedRunNs);
  job.node = "b";
  EXPECT_EQ(Begin(job), first);
  End(job);
  ASSERT_TRUE(store_->Flush().ok());
  clock_.Pass(JobAdmission::kSameCountedRunNs + 1);
  EXPECT_NE(Begin(job), first);  // it began numbering anew
}

TEST_F(JobAdmissionTest, ARunWhoseEndNeverCameIsOverSomeDay) {
  UsePolicy("every: 1");
  Connect("a");
  const HookAnswer first = Begin(JobOn("a", "5"));
  clock_.Pass(JobAdmission::kLongestRunNs);
  EXPECT_EQ(Begin(JobOn("a", "5")), first);
  clock_.Pass(1);
  EXPECT_NE(Begin(JobOn("a", "5")), first);
}

TEST_F(JobAdmissionTest, ARestartKnowsWhichNodesHaveEnded) {
  UsePolicy("every: 1");
  Connect("a");
  Connect("b");
  const std::string id = Begin(JobOn("a", "5", "a,b")).profile_id;
  Begin(JobOn("b", "5", "a,b"));
  End(JobOn("a", "5", "a,b"));
  ASSERT_TRUE(store_->Flush().ok());
  Restart();
  const uint64_t a = Connect("a");
  EXPECT_EQ(link_->stops.size(), 1u);
  const uint64_t b = Connect("b");
  EXPECT_TRUE(link_->stops.empty());  // its part goes on
  PipelineFixture::End(a, id, 0);
  for (int i = 0; i < 10; ++i) pipeline_->Tick();
  EXPECT_FALSE(IsFinal(Status(id).state));
  ASSERT_TRUE(Accept(b, Window(id, "b", 1)).ok());
  End(JobOn("b", "5", "a,b"));
  ASSERT_EQ(link_->stops.size(), 1u);
  PipelineFixture::End(b, id, 1);
  EXPECT_EQ(Over(id), ProfileState::kDone);
}

// Without stopping what the next run has begun there.
TEST_F(JobAdmissionTest, AnEpilogOfTheRunBeforeDoesNotEndTheNextOne) {
  UsePolicy("every: 1");
  Connect("b");
  Connect("a");
  HookJob job = JobOn("a", "5", "a,b");
  const HookAnswer first = Begin(job);
  job.restart = 1;
  job.node = "b";
  const HookAnswer second = Begin(job);
  job.node = "a";
  EXPECT_EQ(End(job), first);
  ASSERT_EQ(link_->stops.size(), 1u);
  EXPECT_EQ(link_->stops[0].profile_id, first.profile_id);
  EXPECT_NE(second, first);
}

// As Slurm 22.05 does when a job is requeued.
TEST_F(JobAdmissionTest, AnEpilogWithTheNumberOfTheNextRunEndsThisOne) {
  UsePolicy("every: 1");
  Connect("a");
  HookJob job = Job("5");
  const std::string first = Begin(job).profile_id;
  job.restart = 1;
  EXPECT_EQ(End(job).profile_id, first);
  ASSERT_EQ(link_->stops.size(), 1u);
  EXPECT_EQ(link_->stops[0].profile_id, first);
  const std::string second = Begin(job).profile_id;
  EXPECT_NE(second, first);
  EXPECT_EQ(End(job).profile_id, second);
  job.restart = 3;
  EXPECT_EQ(End(job).decision, D::kNone);
}

TEST_F(JobAdmissionTest, NodesAddThemselvesAndAreNamed) {
  UsePolicy("every: 1");
  Connect("n1");
  Connect("n2");
  HookJob job = Job("7[3].server", "n[1-3]");
  job.scheduler = "PBS";
  const auto call = [&](const std::string& node) {
    const auto answer = pipeline_->hooks().Begin({node}, job);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or(HookAnswer());
  };
  const HookAnswer first = call("n1.site");
  ProfileStatus status = Status(first.profile_id);
  ASSERT_EQ(status.nodes.size(), 1u);
  EXPECT_EQ(status.notices[0].text,
            "begun by the scheduler hook of node n1.site for PBS job 7[3].server: every job by "
            "policy (number 1)");
  EXPECT_EQ(status.notices[1].text,
            "its job has 3 nodes (n1, n2, n3): each is measured from its own call of the hook on");
  job.node = "n3";  // whatever it says
  EXPECT_EQ(call("n2"), first);
  EXPECT_EQ(call("n2"), first);
  status = Status(first.profile_id);
  ASSERT_EQ(status.nodes.size(), 2u);
  EXPECT_EQ(status.nodes[1].node, "n2");
  // Who says that the job is somebody else's speaks of another one.
  job.uid = 2000;
  EXPECT_EQ(call("n3"), first);
  EXPECT_EQ(Status(first.profile_id).nodes.size(), 2u);
  job.uid = 1000;
  EXPECT_EQ(call("n3"), first);  // its agent is awaited for a while
  EXPECT_EQ(Status(first.profile_id).nodes.size(), 3u);
  EXPECT_EQ(store_->Profiles({})->size(), 1u);
  EXPECT_EQ(*store_->HookCounter(""), 1);
}

// Else the node that calls first would decide for all others; where no node of the job has an agent there is nothing to wait for.
TEST_F(JobAdmissionTest, ANodeWhoseAgentIsAwayBeginsForTheOthers) {
  UsePolicy("every: 1");
  Connect("n2");
  const auto call = [&](const std::string& node, const std::string& id, const std::string& nodes) {
    const auto answer = pipeline_->hooks().Begin({node}, Job(id, nodes));
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or(HookAnswer());
  };
  EXPECT_EQ(call("n1", "1", "n1,n3").decision, D::kUnavailable);
  EXPECT_EQ(call("n1", "2", "").decision, D::kUnavailable);
  const HookAnswer begun = call("n1", "3", "n1,n2");
  EXPECT_EQ(begun.decision, D::kProfile);
  EXPECT_EQ(call("n2", "3", "n1,n2"), begun);
  ASSERT_EQ(Status(begun.profile_id).nodes.size(), 2u);
  EXPECT_EQ(Status(begun.profile_id).nodes[0].phase, NodeProgress::Phase::kDisconnected);
}

TEST_F(JobAdmissionTest, ANodeSpeaksForItsOwnJobsOnly) {
  UsePolicy("every: 1");
  Connect("n1");
  Connect("n2");
  const HookCaller node{"n1.site"};
  EXPECT_EQ(pipeline_->hooks().Begin(node, Job("1", "n[2-3]")).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Calls(HookResult::kRefused), 1u);
  HookJob job = Job("2", "n[1-2]");
  job.uid = 0;
  job.user = "root";
  const auto answer = pipeline_->hooks().Begin(node, job);
  ASSERT_TRUE(answer.ok()) << answer.status();
  // A node cannot say who is root elsewhere, and speaks for itself.
  const ProfileStatus status = Status(answer->profile_id);
  EXPECT_FALSE(status.requester.privileged);
  ASSERT_EQ(status.nodes.size(), 1u);
  EXPECT_EQ(status.nodes[0].node, "n1");
  job.job = "3";
  EXPECT_TRUE(Status(Begin(job).profile_id).requester.privileged);
  // It ends its own part, whatever it says.
  HookJob end = job;
  end.job = "2";
  end.node = "n2";
  link_->stops.clear();  // of n2
  ASSERT_TRUE(pipeline_->hooks().End(node, end).ok());
  EXPECT_TRUE(link_->stops.empty());
}

}  // namespace
}  // namespace perfd::daemon
