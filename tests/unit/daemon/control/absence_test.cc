// Agents that leave, profiles that are cancelled, daemons that restart.
#include <gtest/gtest.h>

#include "daemon/control/session_table.h"
#include "tests/unit/daemon/control/control_fixture.h"

namespace perfd::daemon {
namespace {

TEST_F(ControlTest, AnAgentThatComesBackGoesOn) {
  Connect("a");
  const std::string id = Submit();
  Report("a", id, Phase::kSampling, 1);
  Window("a", id, 1, 10, 20 * kSecond);
  Record(table_.AgentGone("a", now()));
  EXPECT_EQ(table_.Status(id, now())->nodes[0].phase, Phase::kDisconnected);
  Pass(60 * kSecond - 1);
  EXPECT_FALSE(Finalising().has_value());
  log_.clear();
  Connect("a");
  ASSERT_EQ(All<StartNode>().size(), 1u);
  EXPECT_EQ(All<StartNode>()[0].remaining_ns, 40 * kSecond);
  Report("a", id, Phase::kSampling, 1);
  Window("a", id, 2);
  Report("a", id, Phase::kFinished, 1, 2);
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
}

TEST_F(ControlTest, AnAgentThatStaysAwayIsGivenUp) {
  Connect("a");
  const std::string id = Submit();
  Report("a", id, Phase::kSampling, 1);
  Window("a", id, 1);
  Record(table_.AgentGone("a", now()));
  Pass(60 * kSecond);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kPartial);
  EXPECT_TRUE(
      HasNotice(*Finalising(), absl::StatusCode::kUnavailable, "did not come back within 60 s"));
}

TEST_F(ControlTest, AnEndThatIsNotStoredWaitsForTheAgent) {
  Connect("a");
  const std::string id = Submit();
  Window("a", id, 1);
  Report("a", id, Phase::kFinished, 1, 2);
  Record(table_.AgentGone("a", now()));
  log_.clear();
  Connect("a");
  EXPECT_TRUE(All<StartNode>().empty());  // it had ended: it only has to deliver
  Window("a", id, 2);
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
}

TEST_F(ControlTest, ANodeThatNeverEndsHitsTheDeadline) {
  Connect("a");
  const std::string id = Submit();
  Report("a", id, Phase::kSampling, 1);
  Window("a", id, 1);
  Pass(180 * kSecond - 1);
  EXPECT_FALSE(Finalising().has_value());
  Pass(1);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kPartial);
  EXPECT_EQ(All<StopNode>().size(), 1u);
}

TEST_F(ControlTest, CancelKeepsWhatWasMeasured) {
  Connect("a");
  const std::string id = Submit();
  Report("a", id, Phase::kSampling, 1);
  Window("a", id, 1);
  Record(*table_.Cancel(id, "alice", now()));
  ASSERT_EQ(All<StopNode>().size(), 1u);
  EXPECT_FALSE(Finalising().has_value());
  Window("a", id, 2);
  Report("a", id, Phase::kFinished, 1, 2);
  EXPECT_EQ(Finalising()->state, ProfileState::kCancelled);
  EXPECT_EQ(Finalising()->samples, 20u);
  Record(table_.Finalised(id, true, now()));
  EXPECT_EQ(table_.Cancel(id, "alice", now()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(ControlTest, CancelDoesNotWaitForEver) {
  Connect("a");
  const std::string id = Submit();
  Report("a", id, Phase::kSampling, 1);
  Record(*table_.Cancel(id, "alice", now()));
  Pass(10 * kSecond - 1);
  EXPECT_FALSE(Finalising().has_value());
  Pass(1);
  EXPECT_EQ(Finalising()->state, ProfileState::kCancelled);
}

TEST_F(ControlTest, CancelWithoutAgentsEndsAtOnce) {
  Connect("a");
  const std::string id = Submit();
  Record(table_.AgentGone("a", now()));
  Record(*table_.Cancel(id, "alice", now()));
  EXPECT_EQ(Finalising()->state, ProfileState::kCancelled);
}

class RestartTest : public ControlTest {
 protected:
  ProfileStatus Stored(Phase phase, int64_t covered_ns) const {
    ProfileStatus status;
    status.id = "p-000007";
    status.state = ProfileState::kSampling;
    status.requester = kAlice;
    status.spec = CommandSpec();
    status.submitted_unix_ns = now().unix_ns - 30 * kSecond;
    status.started_unix_ns = now().unix_ns - 29 * kSecond;
    status.submit_to_first_sample_ns = kSecond;
    status.samples = 50;
    NodeProgress node;
    node.node = "a";
    node.phase = phase;
    node.ranks = 1;
    node.covered_ns = covered_ns;
    node.windows = static_cast<uint64_t>(covered_ns / (5 * kSecond));
    status.nodes = {node};
    return status;
  }
};

TEST_F(RestartTest, GoesOnWithWhatIsLeft) {
  table_.Restore(Stored(Phase::kSampling, 25 * kSecond), now());
  Connect("a");
  ASSERT_EQ(All<StartNode>().size(), 1u);
  EXPECT_EQ(All<StartNode>()[0].remaining_ns, 35 * kSecond);
  Report("a", "p-000007", Phase::kFinished, 1, 9);
  Window("a", "p-000007", 9);
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
  EXPECT_EQ(Finalising()->samples, 60u);
  EXPECT_EQ(Finalising()->submit_to_first_sample_ns, kSecond);
}

TEST_F(RestartTest, GapsOfBeforeTheProfileDoNotCount) {
  table_.Restore(Stored(Phase::kSampling, 25 * kSecond), now());
  AgentFacts facts = Agent("a");
  facts.stream_missing = 1000;  // of earlier days
  Record(table_.AgentConnected(facts, now()));
  Window("a", "p-000007", 9, 10, 5 * kSecond, 1000);
  Report("a", "p-000007", Phase::kFinished, 1, 9);
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
}

TEST_F(RestartTest, GapsAfterTheRestartCount) {
  table_.Restore(Stored(Phase::kSampling, 25 * kSecond), now());
  AgentFacts facts = Agent("a");
  facts.stream_missing = 1000;
  Record(table_.AgentConnected(facts, now()));
  Window("a", "p-000007", 9, 10, 5 * kSecond, 1003);
  Report("a", "p-000007", Phase::kFinished, 1, 9);
  EXPECT_EQ(Finalising()->state, ProfileState::kPartial);
  EXPECT_TRUE(HasNotice(*Finalising(), absl::StatusCode::kDataLoss, "up to 3 windows"));
}

TEST_F(RestartTest, AgentThatDoesNotComeBackIsGivenUp) {
  table_.Restore(Stored(Phase::kSampling, 25 * kSecond), now());
  Pass(60 * kSecond - 1);
  EXPECT_FALSE(Finalising().has_value());
  Pass(1);
  EXPECT_EQ(Finalising()->state, ProfileState::kPartial);
}

TEST_F(RestartTest, ANodeThatHadEndedIsNotAskedAgain) {
  for (const Phase phase : {Phase::kFinished, Phase::kSampling}) {
    SCOPED_TRACE(NodePhaseName(phase));
    log_.clear();
    const int64_t covered = phase == Phase::kFinished ? 20 * kSecond : 60 * kSecond;
    table_.Restore(Stored(phase, covered), now());
    Connect("a");
    EXPECT_TRUE(All<StartNode>().empty());
    Pass(5 * kSecond);
    Window("a", "p-000007", 30);  // a sign of life: there may be more
    Pass(10 * kSecond - 1);
    EXPECT_FALSE(Finalising().has_value());
    Pass(1);
    ASSERT_TRUE(Finalising().has_value());
    EXPECT_EQ(Finalising()->state, ProfileState::kDone);
    Record(table_.Finalised("p-000007", true, now()));
  }
}

}  // namespace
}  // namespace perfd::daemon
