#include "daemon/policy/job_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perfd::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

HookJob Job() {
  HookJob job;
  job.job = "4711";
  job.uid = 1000;
  job.user = "alice";
  job.nodes = "n[1-2]";
  job.node = "n1";
  return job;
}

TEST(JobRequestTest, TheTargetIsTheJobAndItsUserTheOwner) {
  ProfileSpec preset;
  preset.duration_ns = 30'000'000'000;
  const auto request = MakeJobRequest(Job(), preset);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->spec.target.slurm_job, 4711u);
  EXPECT_EQ(request->spec.duration_ns, 30'000'000'000);
  EXPECT_EQ(request->spec.name, "job 4711");
  EXPECT_EQ(request->requester, (Requester{1000, "alice", false}));
  EXPECT_THAT(request->nodes, ElementsAre("n1", "n2"));
}

TEST(JobRequestTest, WhatIsNotKnownIsMadeUp) {
  HookJob job = Job();
  job.user.clear();
  job.nodes.clear();
  const auto request = MakeJobRequest(job, {});
  EXPECT_EQ(request->requester.name, "uid:1000");
  EXPECT_THAT(request->nodes, ElementsAre("n1"));
  job.node.clear();
  EXPECT_THAT(MakeJobRequest(job, {})->nodes, IsEmpty());
  job.uid = 0;
  EXPECT_FALSE(MakeJobRequest(job, {})->requester.privileged);
}

TEST(JobRequestTest, MessagesNameTheScheduler) {
  HookJob job = Job();
  EXPECT_EQ(JobText(job), "job 4711");
  job.scheduler = "PBS";
  job.job = "4711[3].server";
  EXPECT_EQ(JobText(job), "PBS job 4711[3].server");
}

TEST(JobRequestTest, WrongListsAndIdsAreRefused) {
  HookJob job = Job();
  job.nodes = "n[1-";
  EXPECT_EQ(MakeJobRequest(job, {}).status().code(), absl::StatusCode::kInvalidArgument);
  job = Job();
  job.job = "0";
  EXPECT_EQ(MakeJobRequest(job, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(MatchNodesTest, ByTheirFullOrShortNames) {
  const NodeMatch match =
      MatchNodes({"n1", "n2.site", "n3", "n9"}, {"n1", "n2", "n3.site.example", "n4"});
  EXPECT_THAT(match.nodes, ElementsAre("n1", "n2", "n3.site.example"));
  EXPECT_THAT(match.missing, ElementsAre("n9"));
}

TEST(MatchNodesTest, TheSameNameCountsBeforeOneThatBeginsTheSame) {
  EXPECT_THAT(MatchNodes({"n1.b"}, {"n1.a", "n1.b"}).nodes, ElementsAre("n1.b"));
  EXPECT_THAT(MatchNodes({"n1", "n1.site"}, {"n1"}).nodes, ElementsAre("n1"));
  EXPECT_THAT(MatchNodes({"n1"}, {"n11", "an1"}).missing, ElementsAre("n1"));
}

}  // namespace
}  // namespace perfd::daemon
