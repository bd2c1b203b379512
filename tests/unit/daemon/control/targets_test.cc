// Whose processes a request may name, and on which nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/control/session_table.h"
#include "tests/unit/daemon/control/control_fixture.h"

namespace perfd::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ControlTest, OnlyThePrivilegedNameOtherUsers) {
  Connect("a");
  ProfileSpec spec = CommandSpec();
  spec.target.user = "bob";
  EXPECT_EQ(table_.Plan({spec, kAlice, ""}, now()).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(table_.Plan({spec, kRoot, ""}, now()).ok());
  spec.target.user = "alice";
  EXPECT_TRUE(table_.Plan({spec, kAlice, ""}, now()).ok());
}

TEST_F(ControlTest, PidsNeedANode) {
  ProfileSpec spec;
  spec.target.pids = {42};
  Connect("a");
  EXPECT_EQ(table_.Plan({spec, kAlice, "elsewhere"}, now())->status.nodes[0].node, "a");
  Connect("b");
  EXPECT_EQ(table_.Plan({spec, kAlice, "b"}, now())->status.nodes[0].node, "b");
  EXPECT_EQ(table_.Plan({spec, kAlice, "elsewhere"}, now()).status().code(),
            absl::StatusCode::kInvalidArgument);
  spec.target.node = "a";
  EXPECT_EQ(table_.Plan({spec, kAlice, "b"}, now())->status.nodes[0].node, "a");
  spec.target.node = "c";
  EXPECT_EQ(table_.Plan({spec, kAlice, "b"}, now()).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(ControlTest, ATargetMayNameSeveralNodes) {
  for (const char* node : {"n1", "n2", "n3", "odd[1"}) Connect(node);
  const auto nodes_of = [&](const std::string& target, std::vector<int32_t> pids = {}) {
    ProfileSpec spec = CommandSpec();
    spec.target.node = target;
    if (!pids.empty()) spec.target.command.reset();
    spec.target.pids = std::move(pids);
    auto planned = table_.Plan({spec, kAlice, ""}, now());
    std::vector<std::string> names;
    if (planned.ok())
      for (const NodeProgress& node : planned->status.nodes) names.push_back(node.node);
    else
      names.emplace_back(planned.status().message());
    return names;
  };
  EXPECT_THAT(nodes_of("n[1-2]"), ElementsAre("n1", "n2"));
  EXPECT_THAT(nodes_of("n3,n1"), ElementsAre("n1", "n3"));
  EXPECT_THAT(nodes_of("odd[1"), ElementsAre("odd[1")) << "an agent's name is no list";
  EXPECT_THAT(nodes_of("n[1-5]"), ElementsAre(HasSubstr("nodes n4, n5 are not connected")));
  EXPECT_THAT(nodes_of("n[1-9999999]"), ElementsAre(HasSubstr("target.node: host list")));
  EXPECT_THAT(nodes_of("n[3"), ElementsAre(HasSubstr("target.node: host list")));
  EXPECT_THAT(nodes_of("n1,n2", {42}), ElementsAre(HasSubstr("one node")));
  EXPECT_THAT(nodes_of("n2", {42}), ElementsAre("n2"));
}

TEST_F(ControlTest, RecordingsAreAskedByTheirNames) {
  for (const char* node : {"r1", "r2"}) {
    AgentFacts recording = Agent(node);
    recording.abilities.replayed = true;
    Record(table_.AgentConnected(recording, now()));
  }
  Connect("live");
  ProfileSpec spec = CommandSpec();
  EXPECT_EQ(table_.Plan({spec, kAlice, ""}, now())->status.nodes.size(), 1u);
  spec.target.node = "r[1-2]";
  EXPECT_EQ(table_.Plan({spec, kAlice, ""}, now())->status.nodes.size(), 2u);
}

// It would measure the launcher only, and say nothing.
TEST_F(ControlTest, AnOlderAgentIsNotGivenATree) {
  AgentFacts old = Agent("n1");
  old.version = "0.1";
  Record(table_.AgentConnected(old, now()));
  ProfileSpec spec;
  spec.target.pids = {7};
  EXPECT_TRUE(table_.Plan({spec, kAlice, "n1"}, now()).ok());
  spec.target.tree = true;
  const auto refused = table_.Plan({spec, kAlice, "n1"}, now());
  EXPECT_TRUE(absl::IsUnimplemented(refused.status())) << refused.status();
  EXPECT_TRUE(absl::StrContains(refused.status().message(), "node n1 (version 0.1)"));
  old.abilities.process_trees = true;
  Record(table_.AgentConnected(old, now()));
  const auto taken = table_.Plan({spec, kAlice, "n1"}, now());
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(taken->status.spec.target.tree);
}

TEST_F(ControlTest, UserAgentsServeTheirUserOnly) {
  AgentFacts facts = Agent("a");
  facts.user_mode = true;
  facts.uid = kAlice.uid;
  Record(table_.AgentConnected(facts, now()));
  EXPECT_TRUE(table_.Plan({CommandSpec(), kAlice, ""}, now()).ok());
  EXPECT_EQ(table_.Plan({CommandSpec(), Requester{1001, "bob", false}, ""}, now()).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace perfd::daemon
