// A profile that follows a job: it waits for the job's ranks, and ends with the job.
#include "absl/strings/match.h"
#include "tests/unit/daemon/control/control_fixture.h"

namespace perfd::daemon {
namespace {

constexpr int64_t kMinute = 60 * kSecond;

class JobTest : public ControlTest {
 protected:
  std::string Follow(std::vector<std::string> nodes = {}, int64_t wait_ns = 30 * kMinute) {
    ProfileSpec spec;
    spec.name = "job 4711";
    spec.target.slurm_job = 4711;
    spec.duration_ns = kMinute;
    spec.until_known = false;
    auto planned = table_.Plan({spec, kAlice, "", std::move(nodes)}, now());
    EXPECT_TRUE(planned.ok()) << planned.status();
    if (!planned.ok()) return "";
    const std::string id = absl::StrCat("p-", 200 + ++submitted_);
    planned->status.id = id;
    Record(table_.Add(*std::move(planned), now(), FollowedJob{"PBS job 4711.server", wait_ns}));
    return id;
  }
  void End(const std::string& id, const std::string& node = "") {
    Record(table_.JobEnded(id, node, now()));
  }
  std::vector<std::string> Stopped() const {
    std::vector<std::string> nodes;
    for (const StopNode& stop : All<StopNode>()) nodes.push_back(stop.node);
    return nodes;
  }
};

TEST_F(JobTest, NodesAreToldHowLongToWait) {
  Connect("n1");
  Follow();
  ASSERT_EQ(All<StartNode>().size(), 1u);
  EXPECT_EQ(All<StartNode>()[0].wait_ns, 30 * kMinute);
  // A profile that a person asked for finds what is there.
  Submit();
  EXPECT_EQ(All<StartNode>()[1].wait_ns, 0);
}

TEST_F(JobTest, RanksMayTakeTheirTime) {
  Connect("n1");
  const std::string id = Follow();
  Report("n1", id, Phase::kDiscovering);
  Pass(29 * kMinute);
  EXPECT_TRUE(All<StopNode>().empty());
  EXPECT_EQ(State(id), ProfileState::kDiscovering);
  Report("n1", id, Phase::kSampling, 4);
  Window("n1", id, 1);
  EXPECT_EQ(State(id), ProfileState::kSampling);
  Pass(50 * kSecond);
  Report("n1", id, Phase::kFinished, 4, 1);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
}

TEST_F(JobTest, ButNotForEver) {
  Connect("n1");
  const std::string id = Follow({}, 5 * kMinute);
  Report("n1", id, Phase::kDiscovering);
  Pass(4 * kMinute);
  EXPECT_FALSE(Finalising().has_value());
  Pass(kMinute);
  Pass(0);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kFailed);
  EXPECT_TRUE(HasNotice(*Finalising(), absl::StatusCode::kNotFound,
                        "no process of PBS job 4711.server appeared on n1 in time"));
}

TEST_F(JobTest, AJobThatEndsBeforeItWasSeenSaysSo) {
  Connect("n1");
  const std::string id = Follow();
  Report("n1", id, Phase::kDiscovering);
  Pass(kSecond);
  End(id, "n1");
  ASSERT_EQ(All<StopNode>().size(), 1u);
  EXPECT_EQ(All<StopNode>()[0].reason, "the job has ended");
  Report("n1", id, Phase::kFinished);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kFailed);
  EXPECT_TRUE(HasNotice(*Finalising(), absl::StatusCode::kNotFound,
                        "PBS job 4711.server ended before a process of it was seen on n1"));
}

TEST_F(JobTest, AnAgentThatDoesNotAnswerTheEndIsNotAwaited) {
  Connect("n1");
  const std::string id = Follow();
  Report("n1", id, Phase::kDiscovering);
  Pass(kMinute);
  End(id);
  Pass(9 * kSecond);
  EXPECT_FALSE(Finalising().has_value());
  Pass(2 * kSecond);
  Pass(0);
  EXPECT_TRUE(Finalising().has_value());
}

TEST_F(JobTest, TheEndOfTheJobEndsTheMeasurement) {
  Connect("n1");
  const std::string id = Follow();
  Report("n1", id, Phase::kSampling, 2);
  Window("n1", id, 1);
  End(id);
  EXPECT_EQ(Stopped(), std::vector<std::string>{"n1"});
  // The ranks ended with their job: nothing is missing.
  Report("n1", id, Phase::kAnalyzing, 2, 0,
         {{Notice::Severity::kWarning, absl::StatusCode::kNotFound, "n1", 99, "rank 0 ended"}});
  Window("n1", id, 2);
  Report("n1", id, Phase::kFinished, 2, 2);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
}

TEST_F(JobTest, ARankThatEndsEarlyIsMissedWhereNoJobIsFollowed) {
  Connect("n1");
  const std::string id = Submit();
  Window("n1", id, 1);
  Report("n1", id, Phase::kFinished, 2, 1,
         {{Notice::Severity::kWarning, absl::StatusCode::kNotFound, "n1", 99, "rank 0 ended"}});
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kPartial);
}

TEST_F(JobTest, EachNodeEndsOnItsOwn) {
  Connect("n1");
  Connect("n2.site");
  Connect("n3");
  const std::string id = Follow({"n1", "n2.site"});
  ASSERT_EQ(All<StartNode>().size(), 2u);
  for (const char* node : {"n1", "n2.site"}) {
    Report(node, id, Phase::kSampling, 2);
    Window(node, id, 1);
  }
  End(id, "n2");  // as the scheduler calls it
  EXPECT_EQ(Stopped(), std::vector<std::string>{"n2.site"});
  End(id, "n2");  // said again
  End(id, "n9");  // not of this profile
  EXPECT_EQ(Stopped().size(), 1u);
  Report("n2.site", id, Phase::kFinished, 2, 1);
  EXPECT_FALSE(Finalising().has_value());
  End(id, "n1");
  EXPECT_EQ(Stopped().size(), 2u);
  Report("n1", id, Phase::kFinished, 2, 1);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
}

TEST_F(JobTest, AnAgentThatComesBackIsToldTheRest) {
  Connect("n1");
  const std::string id = Follow();
  Report("n1", id, Phase::kDiscovering);
  Record(table_.AgentGone("n1", now()));
  Pass(10 * kSecond);
  Connect("n1");
  ASSERT_EQ(All<StartNode>().size(), 2u);
  EXPECT_EQ(All<StartNode>()[1].wait_ns, 30 * kMinute - 10 * kSecond);
  Record(table_.AgentGone("n1", now()));
  End(id, "n1");
  EXPECT_TRUE(Stopped().empty());
  Connect("n1");
  EXPECT_EQ(All<StartNode>().size(), 2u);
  EXPECT_EQ(Stopped(), std::vector<std::string>{"n1"});
}

TEST_F(JobTest, OnlyNodesOfTheJobAreAsked) {
  Connect("n1");
  Connect("n2");
  Follow({"n2"});
  ASSERT_EQ(All<StartNode>().size(), 1u);
  EXPECT_EQ(All<StartNode>()[0].node, "n2");
  ProfileSpec spec;
  spec.target.slurm_job = 1;
  EXPECT_EQ(table_.Plan({spec, kAlice, "", {"n7"}}, now()).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(JobTest, TheSameNameCountsBeforeOneThatBeginsTheSame) {
  Connect("n1.a");
  Connect("n1.b");
  const std::string id = Follow({"n1.a", "n1.b"});
  End(id, "n1.b");
  EXPECT_EQ(Stopped(), std::vector<std::string>{"n1.b"});
}

// Prologs that speak for their own node only.
TEST_F(JobTest, MoreNodesJoin) {
  Connect("n1");
  Connect("n2");
  const std::string id = Follow({"n1"});
  Record(table_.Join(id, "n2", now()));
  ASSERT_EQ(All<StartNode>().size(), 2u);
  EXPECT_EQ(All<StartNode>()[1].node, "n2");
  EXPECT_EQ(All<StartNode>()[1].wait_ns, 30 * kMinute);
  EXPECT_EQ(All<SaveProfile>().back().status.nodes.size(), 2u);
  EXPECT_TRUE(table_.Join(id, "n2", now()).empty());  // said again
  EXPECT_TRUE(table_.Join("p-999", "n2", now()).empty());
  for (const char* node : {"n1", "n2"}) {
    Report(node, id, Phase::kSampling, 2);
    Window(node, id, 1);
  }
  End(id, "n1");
  Report("n1", id, Phase::kFinished, 2, 1);
  EXPECT_FALSE(Finalising().has_value());  // n2 is measured
  End(id, "n2");
  Report("n2", id, Phase::kFinished, 2, 1);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
  EXPECT_EQ(Finalising()->nodes.size(), 2u);
  EXPECT_TRUE(table_.Join(id, "n3", now()).empty());  // too late
}

TEST_F(JobTest, ANodeThatJoinsWithoutAnAgentIsAwaitedForAWhile) {
  Connect("n1");
  const std::string id = Follow({"n1"});
  Report("n1", id, Phase::kDiscovering);
  Record(table_.Join(id, "n2", now()));
  Record(table_.Join(id, "n3", now()));
  EXPECT_EQ(All<StartNode>().size(), 1u);
  Pass(50 * kSecond);
  Connect("n2");
  ASSERT_EQ(All<StartNode>().size(), 2u);
  EXPECT_EQ(All<StartNode>()[1].node, "n2");
  Report("n2", id, Phase::kDiscovering);
  Pass(11 * kSecond);
  Report("n1", id, Phase::kSampling, 1);
  Window("n1", id, 1);
  End(id);
  Report("n1", id, Phase::kFinished, 1, 1);
  Report("n2", id, Phase::kFinished);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_TRUE(HasNotice(*Finalising(), absl::StatusCode::kUnavailable,
                        "the agent of node n3 did not come back within 60 s"));
}

// Its prolog may come when the others have long been measured.
TEST_F(JobTest, ANodeThatJoinsLateHasTheSameTime) {
  Connect("n1");
  Connect("n2");
  const std::string id = Follow({"n1"}, 5 * kMinute);
  Report("n1", id, Phase::kSampling, 1);
  Window("n1", id, 1);
  Pass(7 * kMinute);
  Record(table_.Join(id, "n2", now()));
  ASSERT_EQ(All<StartNode>().size(), 2u);
  EXPECT_EQ(All<StartNode>()[1].wait_ns, 5 * kMinute);
  Report("n2", id, Phase::kDiscovering);
  Report("n1", id, Phase::kFinished, 1, 1);
  Pass(5 * kMinute - kSecond);
  EXPECT_FALSE(Finalising().has_value());
  Report("n2", id, Phase::kSampling, 1);
  Window("n2", id, 1);
  Pass(kMinute);
  Report("n2", id, Phase::kFinished, 1, 1);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
}

TEST_F(JobTest, ButANodeThatJoinsLateIsNotAwaitedForEverEither) {
  Connect("n1");
  Connect("n2");
  const std::string id = Follow({"n1"}, 5 * kMinute);
  Report("n1", id, Phase::kSampling, 1);
  Window("n1", id, 1);
  Pass(kMinute);
  Record(table_.Join(id, "n2", now()));
  Report("n1", id, Phase::kFinished, 1, 1);
  Report("n2", id, Phase::kDiscovering);
  Pass(5 * kMinute - 1);
  EXPECT_FALSE(Finalising().has_value());
  Pass(1);
  EXPECT_TRUE(Finalising().has_value());
}

// As a node without an agent: it may still come.
TEST_F(JobTest, AnAgentOfAnotherUserIsNotAsked) {
  const auto connect = [this](const std::string& node, uint32_t uid) {
    AgentFacts facts = Agent(node);
    facts.user_mode = true;
    facts.uid = uid;
    Record(table_.AgentConnected(facts, now()));
  };
  connect("n1", 2000);
  connect("n2", 2000);
  ProfileSpec spec;
  spec.target.slurm_job = 4711;
  spec.duration_ns = kMinute;
  spec.until_known = false;
  auto planned = table_.Plan({spec, kAlice, "", {"n1"}, true}, now());
  ASSERT_TRUE(planned.ok()) << planned.status();
  planned->status.id = "p-000400";
  Record(table_.Add(*std::move(planned), now(), FollowedJob{"job 4711", kMinute}));
  Record(table_.Join("p-000400", "n2", now()));
  EXPECT_TRUE(All<StartNode>().empty());
  const auto now_known = table_.Status("p-000400", now());
  ASSERT_TRUE(now_known.ok());
  for (const NodeProgress& node : now_known->nodes)
    EXPECT_EQ(node.phase, Phase::kDisconnected) << node.node;
  connect("n1", kAlice.uid);
  ASSERT_EQ(All<StartNode>().size(), 1u);
  EXPECT_EQ(All<StartNode>()[0].node, "n1");
}

TEST_F(JobTest, NodesMayBeTakenBeforeTheirAgentIsThere) {
  ProfileSpec spec;
  spec.target.slurm_job = 4711;
  const auto planned = table_.Plan({spec, kAlice, "", {"n1"}, true}, now());
  ASSERT_TRUE(planned.ok()) << planned.status();
  ASSERT_EQ(planned->status.nodes.size(), 1u);
  EXPECT_EQ(planned->status.nodes[0].node, "n1");
}

TEST_F(JobTest, ItsUserMayEndTheProfile) {
  Connect("n1");
  const std::string id = Follow();
  Report("n1", id, Phase::kDiscovering);
  Record(*table_.Cancel(id, "alice", now()));
  Report("n1", id, Phase::kFinished);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kCancelled);
  End(id);  // the epilog comes as always
}

TEST_F(JobTest, ARestartedDaemonGoesOnWaiting) {
  ProfileStatus status;
  status.id = "p-000300";
  status.state = ProfileState::kDiscovering;
  status.requester = kAlice;
  status.spec.target.slurm_job = 4711;
  status.spec.duration_ns = kMinute;
  status.spec.until_known = false;
  status.submitted_unix_ns = now().unix_ns - 20 * kMinute;
  NodeProgress node;
  node.node = "n1";
  status.nodes = {node};
  table_.Restore(status, now(), FollowedJob{"job 4711", 10 * kMinute});
  Connect("n1");
  ASSERT_EQ(All<StartNode>().size(), 1u);
  EXPECT_EQ(All<StartNode>()[0].wait_ns, 10 * kMinute);
  Report("n1", status.id, Phase::kDiscovering);
  Pass(9 * kMinute);
  EXPECT_FALSE(Finalising().has_value());
  Report("n1", status.id, Phase::kSampling, 1);
  Window("n1", status.id, 1);
  Pass(50 * kSecond);
  EXPECT_FALSE(Finalising().has_value());
  EXPECT_TRUE(table_.Active(status.id));
}

TEST_F(JobTest, ARestartedDaemonGivesWhoJoinsTheWholeTime) {
  ProfileStatus status;
  status.id = "p-000301";
  status.state = ProfileState::kDiscovering;
  status.requester = kAlice;
  status.spec.target.slurm_job = 4711;
  status.spec.duration_ns = kMinute;
  status.spec.until_known = false;
  status.submitted_unix_ns = now().unix_ns - 20 * kMinute;
  table_.Restore(status, now(), FollowedJob{"job 4711", 0, 10 * kMinute});
  Connect("n1");
  Record(table_.Join(status.id, "n1", now()));
  ASSERT_EQ(All<StartNode>().size(), 1u);
  EXPECT_EQ(All<StartNode>()[0].wait_ns, 10 * kMinute);
}

}  // namespace
}  // namespace perfd::daemon
