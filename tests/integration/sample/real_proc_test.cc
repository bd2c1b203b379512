// Discovery and node checks against the real /proc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "agent/discover/rank_finder.h"
#include "agent/doctor/node_checks.h"
#include "tests/integration/sample/puppet_process.h"

namespace perfd::agent {
namespace {

Requester Self() {
  return {.uid = ::getuid(), .name = "tester", .privileged = false};
}

TEST(RealProc, FindsTwoRanksOfTheSameJob) {
  const std::string job = absl::StrCat("real-", ::getpid());
  std::vector<std::unique_ptr<PuppetProcess>> puppets;
  for (const char* rank : {"PMIX_RANK=1", "PMIX_RANK=0"}) {
    puppets.push_back(std::make_unique<PuppetProcess>(
        std::vector<std::string>{"say:up", "wait"},
        std::vector<std::string>{rank, absl::StrCat("PMIX_NAMESPACE=", job),
                                 "OMPI_COMM_WORLD_SIZE=2"}));
    ASSERT_TRUE(puppets.back()->Heard());
  }
  TargetSpec target;
  target.command = "sample_puppet";
  const auto found = RankFinder(ProcFs(), "here").Find(target, {}, Self());
  ASSERT_TRUE(found.ok()) << found.status();
  std::vector<RankInfo> ranks;  // of this job: the same program may run elsewhere on this machine
  for (const RankInfo& rank : found->ranks)
    if (rank.job_id == job) ranks.push_back(rank);
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].pid, puppets[1]->pid());
  EXPECT_EQ(ranks[1].rank, 1);
  EXPECT_NE(ranks[1].start_ticks, 0u);
}

TEST(RealProc, AnEndedProcessIsNotFoundAndAZombieIsRefused) {
  PuppetProcess puppet({"say:end"});
  ASSERT_TRUE(puppet.Heard());
  const RankFinder finder(ProcFs(), "here");
  TargetSpec target;
  target.pids = {puppet.pid()};
  // It has said its last word; its state changes any moment now, bounded by the puppet's alarm.
  while (ProcFs().Status(puppet.pid())->state != 'Z') ::usleep(1000);
  const auto zombie = finder.Find(target, {}, Self());
  ASSERT_EQ(zombie->rejected.size(), 1u);
  EXPECT_TRUE(absl::IsNotFound(zombie->rejected[0].reason));
  puppet.Wait();
  EXPECT_TRUE(absl::IsNotFound(finder.Find(target, {}, Self())->rejected.at(0).reason));
}

TEST(RealProc, KernelThreadsAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: other users' exe links are not readable";
  const auto kthreadd = ProcFs().Status(2);
  if (!kthreadd.ok() || kthreadd->name != "kthreadd") GTEST_SKIP() << "no kernel threads visible";
  TargetSpec target;
  target.pids = {2};
  const auto found = RankFinder(ProcFs(), "here").Find(target, {}, Self());
  ASSERT_EQ(found->rejected.size(), 1u);
  EXPECT_TRUE(absl::IsFailedPrecondition(found->rejected[0].reason)) << found->rejected[0].reason;
}

TEST(RealProc, NodeChecksAgreeWithThisMachine) {
  const auto checks = RunNodeChecks(ProcFs(), {});
  EXPECT_GE(checks.size(), 17u);
  for (const NodeCheck& check : checks) {
    EXPECT_FALSE(check.name.empty());
    EXPECT_FALSE(check.found.empty()) << check.name;
    EXPECT_EQ(check.ok, check.fix.empty()) << check.name;
  }
}

}  // namespace
}  // namespace perfd::agent
