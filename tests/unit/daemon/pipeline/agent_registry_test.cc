#include "daemon/pipeline/agent_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perfd::daemon {
namespace {

class SilentLink final : public AgentLink {
 public:
  void Welcome(uint64_t) override {}
  void Start(const StartNode&) override {}
  void Stop(const StopNode&) override {}
  void Measure(const MeasureNode&) override {}
  void AskDoctor(uint64_t) override {}
  void Close(const absl::Status&) override { closed = true; }

  bool closed = false;
};

AgentFacts Agent(uint32_t uid, bool user_mode, const std::string& stream) {
  AgentFacts facts;
  facts.node = "a";
  facts.uid = uid;
  facts.user_mode = user_mode;
  facts.stream_id = stream;
  return facts;
}

class AgentRegistryTest : public testing::Test {
 protected:
  bool Connects(const AgentFacts& facts, int64_t at_ns = 0) {
    return registry_.Connect(facts, std::make_shared<SilentLink>(), {at_ns, at_ns}).ok();
  }
  Limits limits_;
  AgentRegistry registry_{limits_};
};

TEST_F(AgentRegistryTest, TwoAgentsOfOneUserDoNotThrowEachOtherOut) {
  ASSERT_TRUE(Connects(Agent(1000, true, "one")));
  EXPECT_TRUE(Connects(Agent(1000, true, "one")));  // come back
  EXPECT_FALSE(Connects(Agent(1000, true, "two")));
  EXPECT_FALSE(Connects(Agent(1000, true, "two"), AgentRegistry::kSilentNs - 1));
  EXPECT_TRUE(Connects(Agent(1000, true, "two"), AgentRegistry::kSilentNs));
}

TEST_F(AgentRegistryTest, WhatItCanDoIsKnownBeforeTheFirstHeartbeat) {
  AgentFacts facts = Agent(0, false, "one");
  facts.can_inject = true;
  const auto connection = registry_.Connect(facts, std::make_shared<SilentLink>(), {0, 0});
  EXPECT_TRUE(registry_.Find(*connection)->status.health.can_inject);
}

TEST_F(AgentRegistryTest, ASignOfLifeCounts) {
  const auto connection =
      registry_.Connect(Agent(1000, true, "one"), std::make_shared<SilentLink>(), {0, 0});
  AgentRegistry::Heard(*registry_.Find(*connection), {1, 1});
  EXPECT_FALSE(Connects(Agent(1000, true, "two"), AgentRegistry::kSilentNs));
  EXPECT_TRUE(Connects(Agent(1000, true, "two"), AgentRegistry::kSilentNs + 1));
}

TEST_F(AgentRegistryTest, TheNodesOwnAgentOutranksAUsers) {
  ASSERT_TRUE(Connects(Agent(1000, true, "one")));
  EXPECT_TRUE(Connects(Agent(0, false, "own")));
  EXPECT_FALSE(Connects(Agent(1000, true, "one"), AgentRegistry::kSilentNs));
  EXPECT_FALSE(Connects(Agent(0, true, "roots-own")));
  EXPECT_TRUE(Connects(Agent(0, false, "spool-was-lost")));
}

TEST_F(AgentRegistryTest, AUserHasAFewNamesAndOnlyWhileConnected) {
  LimitValues values = StandardLimits();
  values[static_cast<size_t>(Limit::kNodeNamesPerUser)] = 2;
  limits_.Set(values);
  const auto connect = [&](uint32_t uid, const std::string& node) {
    AgentFacts facts = Agent(uid, true, node);
    facts.node = node;
    return registry_.Connect(facts, std::make_shared<SilentLink>(), {0, 0});
  };
  const auto first = connect(1000, "a");
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(connect(1000, "b").ok());
  const absl::Status refused = connect(1000, "c").status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("limits.nodes_per_user"));
  EXPECT_EQ(limits_.Hits()[static_cast<size_t>(Limit::kNodeNamesPerUser)], 1u);
  for (const char* node : {"r1", "r2", "r3"}) EXPECT_TRUE(connect(0, node).ok()) << "root's";
  EXPECT_TRUE(connect(1000, "b").ok()) << "the name is theirs";
  EXPECT_TRUE(connect(1001, "c").ok());
  EXPECT_EQ(registry_.Disconnect(*first, 0), "a");
  EXPECT_FALSE(registry_.entries().contains("a"));
  EXPECT_TRUE(connect(1000, "d").ok());
}

TEST_F(AgentRegistryTest, AUsersAgentDoesNotWipeTheNodeWhoseNameItHad) {
  AgentFacts own = Agent(0, false, "one");
  own.version = "own";
  const auto first = registry_.Connect(own, std::make_shared<SilentLink>(), {0, 0});
  registry_.Disconnect(*first, 7);
  const auto users =
      registry_.Connect(Agent(1000, true, "two"), std::make_shared<SilentLink>(), {8, 8});
  ASSERT_TRUE(users.ok());
  EXPECT_TRUE(registry_.entries().at("a").status.user_mode);
  registry_.Disconnect(*users, 9);
  ASSERT_TRUE(registry_.entries().contains("a"));
  EXPECT_EQ(registry_.entries().at("a").status.version, "own");
  EXPECT_EQ(registry_.entries().at("a").status.last_seen_unix_ns, 7);
  EXPECT_TRUE(Connects(own));
}

TEST_F(AgentRegistryTest, AUsersAgentMakesRoomForANodes) {
  LimitValues values = StandardLimits();
  values[static_cast<size_t>(Limit::kNodeNames)] = 1;
  limits_.Set(values);
  AgentFacts users = Agent(1000, true, "one");
  const auto link = std::make_shared<SilentLink>();
  const auto first = registry_.Connect(users, link, {0, 0});
  ASSERT_TRUE(first.ok());
  AgentFacts node = Agent(0, false, "two");
  node.node = "b";
  EXPECT_TRUE(registry_.Connect(node, std::make_shared<SilentLink>(), {0, 0}).ok());
  EXPECT_TRUE(link->closed);
  users.node = "c";
  EXPECT_FALSE(registry_.Connect(users, std::make_shared<SilentLink>(), {0, 0}).ok());
  registry_.Disconnect(*first, 0);
  AgentFacts another = Agent(0, false, "three");
  another.node = "d";
  const absl::Status refused =
      registry_.Connect(another, std::make_shared<SilentLink>(), {0, 0}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << "all names are of nodes";
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("(limits.nodes)"));
}

TEST_F(AgentRegistryTest, ANameBelongsToTheStreamThatHadItLast) {
  EXPECT_TRUE(registry_.MayBeNameOf("a", "two"));
  ASSERT_TRUE(Connects(Agent(0, false, "one")));
  EXPECT_TRUE(registry_.MayBeNameOf("a", "one"));
  EXPECT_FALSE(registry_.MayBeNameOf("a", "two"));
}

}  // namespace
}  // namespace perfd::daemon
