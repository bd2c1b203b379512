// The scheduler hook through the spine and a real store: each run of a job is decided about once.
#include <gmock/gmock.h>

#include <set>
#include <thread>

#include "tests/unit/daemon/pipeline/job_admission_fixture.h"

namespace perfd::daemon {
namespace {

using ::testing::HasSubstr;
using D = HookDecision;

TEST_F(JobAdmissionTest, EveryThirdJobIsProfiled) {
  Connect("a");
  std::set<std::string> profiles;
  for (int i = 1; i <= 30; ++i) {
    const HookAnswer answer = Begin(Job(std::to_string(i)));
    EXPECT_EQ(answer.decision, i % 3 == 0 ? D::kProfile : D::kNotChosen) << answer.reason;
    if (!answer.profile_id.empty()) profiles.insert(answer.profile_id);
  }
  EXPECT_EQ(profiles.size(), 10u);
  EXPECT_EQ(pipeline_->hooks().figures().jobs[static_cast<size_t>(D::kProfile)], 10u);
}

TEST_F(JobAdmissionTest, TheProfileBelongsToTheJobsUser) {
  UsePolicy("every: 1");
  Connect("a");
  const std::string id = Begin(Job("4711")).profile_id;
  const ProfileStatus status = Status(id);
  EXPECT_EQ(status.requester, (Requester{1000, "alice", false}));
  EXPECT_EQ(status.spec.target.slurm_job, 4711u);
  ASSERT_FALSE(status.notices.empty());
  EXPECT_EQ(status.notices[0].text,
            "begun by the scheduler hook for job 4711: every job by policy (number 1)");
  EXPECT_TRUE(pipeline_->Get({1000, "alice", false}, id).ok());
  EXPECT_FALSE(pipeline_->Get({1001, "bob", false}, id).ok());
  EXPECT_TRUE(pipeline_->Cancel({1000, "alice", false}, id).ok());
}

TEST_F(JobAdmissionTest, AHundredNodesAreOneJobAndOneProfile) {
  UsePolicy("every: 1");
  Connect("a");
  std::vector<std::thread> nodes;
  std::vector<HookAnswer> answers(100);
  for (size_t i = 0; i < answers.size(); ++i) {
    nodes.emplace_back([this, i, &answers] {
      HookJob job = Job("7");
      job.node = "n" + std::to_string(i);
      answers[i] = Begin(job);
    });
  }
  for (std::thread& node : nodes) node.join();
  for (const HookAnswer& answer : answers) EXPECT_EQ(answer, answers[0]);
  EXPECT_EQ(answers[0].decision, D::kProfile);
  EXPECT_EQ(store_->Profiles({})->size(), 1u);
  EXPECT_EQ(*store_->HookCounter(""), 1);
  EXPECT_EQ(Calls(HookResult::kDecided), 1u);
  EXPECT_EQ(Calls(HookResult::kRepeated), 99u);
}

TEST_F(JobAdmissionTest, CountingSurvivesARestart) {
  Connect("a");
  for (const char* job : {"1", "2"}) EXPECT_EQ(Begin(Job(job)).decision, D::kNotChosen);
  Restart();
  Connect("a");
  EXPECT_EQ(Begin(Job("2")).decision, D::kNotChosen);  // said again
  const HookAnswer third = Begin(Job("3"));
  EXPECT_EQ(third.decision, D::kProfile);
  Restart();
  EXPECT_EQ(Begin(Job("3")), third);
  EXPECT_FALSE(IsFinal(Status(third.profile_id).state));  // it goes on
}

TEST_F(JobAdmissionTest, ARestartedJobIsAnotherRun) {
  UsePolicy("every: 1");
  Connect("a");
  HookJob job = Job("5");
  const std::string first = Begin(job).profile_id;
  job.restart = 1;
  EXPECT_NE(Begin(job).profile_id, first);
  // A scheduler that does not count restarts: long after its end the same number is another job.
  job = Job("6");
  const std::string before = Begin(job).profile_id;
  End(job);
  ASSERT_TRUE(store_->Flush().ok());  // the end is written when convenient
  clock_.Pass(JobAdmission::kSameRunNs);
  EXPECT_EQ(Begin(job).profile_id, before);
  clock_.Pass(1);
  EXPECT_NE(Begin(job).profile_id, before);
}

TEST_F(JobAdmissionTest, TheQuotaOfTheDayBeginsAnewAtMidnight) {
  UsePolicy("{every: 1, quota: {active: 100, per_day: 2}}");
  Connect("a");
  EXPECT_EQ(Begin(Job("1")).decision, D::kProfile);
  EXPECT_EQ(Begin(Job("2")).decision, D::kProfile);
  const HookAnswer third = Begin(Job("3"));
  EXPECT_EQ(third.decision, D::kQuota);
  EXPECT_EQ(third.profile_id, "");
  clock_.Pass(24 * 3600 * kNsPerSecond);
  EXPECT_EQ(Begin(Job("3")).decision, D::kQuota);  // decided for good
  EXPECT_EQ(Begin(Job("4")).decision, D::kProfile);
}

TEST_F(JobAdmissionTest, OnlySoManyAtATime) {
  UsePolicy("{every: 1, quota: {active: 1}}");
  const uint64_t agent = Connect("a");
  const std::string id = Begin(Job("1")).profile_id;
  EXPECT_EQ(Begin(Job("2")).decision, D::kQuota);
  ASSERT_TRUE(Accept(agent, Window(id, "a", 1)).ok());
  PipelineFixture::End(agent, id, 1);
  EXPECT_EQ(Over(id), ProfileState::kDone);
  EXPECT_EQ(Begin(Job("3")).decision, D::kProfile);
}

TEST_F(JobAdmissionTest, AJobThatEndsUnseenDoesNotCountForTheDay) {
  UsePolicy("{every: 1, quota: {active: 100, per_day: 1}}");
  const uint64_t agent = Connect("a");
  const HookJob job = Job("1");
  const std::string id = Begin(job).profile_id;
  EXPECT_EQ(End(job).profile_id, id);
  ASSERT_EQ(link_->stops.size(), 1u);
  EXPECT_EQ(link_->stops[0].profile_id, id);
  perfd::daemon::SessionUpdate update;
  update.profile_id = id;
  update.phase = NodeProgress::Phase::kFinished;
  pipeline_->OnSessionUpdate(agent, update);
  EXPECT_EQ(Over(id), ProfileState::kFailed);
  EXPECT_THAT(Status(id).notices.back().text, HasSubstr("ended before a process of it was seen"));
  EXPECT_EQ(Begin(Job("2")).decision, D::kProfile);
}

TEST_F(JobAdmissionTest, NodesWithoutAnAgentAreSaid) {
  UsePolicy("every: 1");
  Connect("n1");
  Connect("n2.site");
  Connect("other");
  const std::string id = Begin(Job("1", "n[1-3]")).profile_id;
  const ProfileStatus status = Status(id);
  ASSERT_EQ(status.nodes.size(), 2u);
  EXPECT_EQ(status.nodes[0].node, "n1");
  EXPECT_EQ(status.nodes[1].node, "n2.site");
  ASSERT_GE(status.notices.size(), 2u);
  EXPECT_THAT(status.notices[1].text, HasSubstr("no agent was connected on n3"));
  const HookAnswer nowhere = Begin(Job("2", "m[1-2]"));
  EXPECT_EQ(nowhere.decision, D::kUnavailable);
  EXPECT_THAT(nowhere.reason, HasSubstr("no agent is connected on m1, m2"));
}

TEST_F(JobAdmissionTest, WhatCannotBePlannedLeavesItsPlace) {
  UsePolicy("{every: 1, quota: {active: 1000}}");
  const HookAnswer none = Begin(Job("1", ""));
  EXPECT_EQ(none.decision, D::kUnavailable);
  EXPECT_THAT(none.reason, HasSubstr("no node is connected"));
  Connect("a");
  // As many as the daemon takes at a time; the next one is told so.
  const auto most = static_cast<size_t>(Limits().Value(Limit::kProfiles));
  for (size_t i = 0; i < most; ++i)
    EXPECT_EQ(Begin(Job(std::to_string(100 + i))).decision, D::kProfile);
  EXPECT_EQ(Begin(Job("2")).decision, D::kUnavailable);
}

TEST_F(JobAdmissionTest, WithoutAPolicyNothingIsDecided) {
  pipeline_.reset();
  pipeline_ = std::make_unique<Pipeline>(*store_, clock_, PipelineOptions());
  const HookAnswer answer = Begin(Job("1"));
  EXPECT_EQ(answer.decision, D::kNone);
  EXPECT_THAT(answer.reason, HasSubstr("no policy: start it with --policy"));
  EXPECT_TRUE(store_->HookJobs(std::nullopt, 10)->empty());
  EXPECT_EQ(Calls(HookResult::kNoPolicy), 1u);
}

TEST_F(JobAdmissionTest, AFileThatWasNeverTakenIsNoPolicyEither) {
  Begin(Job("1"));
  pipeline_.reset();
  std::ofstream(path_) << "evry: 3";
  policy_ = std::make_unique<PolicySource>(path_);
  ASSERT_FALSE(policy_->Reload().ok());
  PipelineOptions options;
  options.policy = policy_.get();
  pipeline_ = std::make_unique<Pipeline>(*store_, clock_, std::move(options));
  const HookAnswer answer = Begin(Job("2"));
  EXPECT_EQ(answer.decision, D::kNone);
  EXPECT_THAT(answer.reason, HasSubstr("no policy: its file is not taken"));
  EXPECT_THAT(pipeline_->hooks().List({0, "root", true}, 10)->policy_error, HasSubstr("'evry'"));
  EXPECT_EQ(pipeline_->Figures().hook.policy_read, false);
  // Once it is mended, counting goes on where it was.
  std::ofstream(path_) << "every: 3";
  ASSERT_TRUE(policy_->Reload().ok());
  EXPECT_THAT(Begin(Job("2")).reason, HasSubstr("this is number 2"));
  EXPECT_EQ(pipeline_->Figures().hook.policy_read, true);
}

TEST_F(JobAdmissionTest, AnEpilogWithoutAPrologIsAllRight) {
  EXPECT_EQ(End(Job("1")).decision, D::kNone);
  EXPECT_EQ(Calls(HookResult::kUnknown), 1u);
  Connect("a");
  Begin(Job("2"));
  EXPECT_EQ(End(Job("2")).decision, D::kNotChosen);
  EXPECT_EQ(End(Job("2")).decision, D::kNotChosen);
  EXPECT_EQ(Calls(HookResult::kEnded), 2u);
}

TEST_F(JobAdmissionTest, ElementsOfAnArrayAreJobsOfTheirOwn) {
  UsePolicy("every: 2");
  Connect("a");
  EXPECT_EQ(Begin(Job("7[1].server")).decision, D::kNotChosen);
  const HookAnswer second = Begin(Job("7[2].server"));
  EXPECT_EQ(second.decision, D::kProfile);
  EXPECT_EQ(Status(second.profile_id).spec.target.slurm_job, JobNumber("7[2]"));
}

TEST_F(JobAdmissionTest, APresetThatIsNoneIsNoWayOut) {
  UsePolicy("{every: 1000, users: {opt_out: false}}");
  Connect("a");
  HookJob job = Job("1");
  job.preference = HookPreference::kOptIn;
  job.preset = "nonsense";
  const HookAnswer answer = Begin(job);
  ASSERT_EQ(answer.decision, D::kProfile);
  EXPECT_THAT(Status(answer.profile_id).notices[0].text,
              HasSubstr("'nonsense', which is none of default: 'default' is taken"));
}

TEST_F(JobAdmissionTest, WrongHostListsAreRefusedOrSaid) {
  UsePolicy("every: 1");
  Connect("a");
  EXPECT_EQ(Begin(Job("1", "n[1-")).decision, D::kUnavailable);
  EXPECT_EQ(pipeline_->hooks().Begin({"a"}, Job("2", "n[1-")).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(JobAdmissionTest, APolicyThatIsReadAnewHoldsForTheNextJob) {
  Connect("a");
  EXPECT_EQ(Begin(Job("1")).decision, D::kNotChosen);
  std::ofstream(path_) << "every: 1";
  ASSERT_TRUE(policy_->Reload().ok());
  EXPECT_EQ(Begin(Job("1")).decision, D::kNotChosen);
  EXPECT_EQ(Begin(Job("2")).decision, D::kProfile);
  std::ofstream(path_) << "every: many";
  ASSERT_FALSE(policy_->Reload().ok());
  EXPECT_EQ(Begin(Job("3")).decision, D::kProfile);
  EXPECT_EQ(pipeline_->Figures().hook.policy_read, false);
}

TEST_F(JobAdmissionTest, TheListShowsWhatOneMaySee) {
  Connect("a");
  Begin(Job("1"));
  HookJob other = Job("2");
  other.uid = 2000;
  Begin(other);
  const auto all = pipeline_->hooks().List({0, "root", true}, 0);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->records.size(), 2u);
  EXPECT_EQ(all->records[0].job.job, "2");
  EXPECT_EQ(all->records[0].number, 2);
  EXPECT_THAT(all->policy, HasSubstr("one of every 3 jobs"));
  EXPECT_EQ(all->counts.size(), static_cast<size_t>(kHookDecisionCount));
  const auto own = pipeline_->hooks().List({1000, "alice", false}, 0);
  ASSERT_EQ(own->records.size(), 1u);
  EXPECT_TRUE(own->counts.empty());
}

}  // namespace
}  // namespace perfd::daemon
