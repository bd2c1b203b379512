#include "daemon/pipeline/agent_registry.h"

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
  void Close(const absl::Status&) override {}
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
  AgentRegistry registry_;
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

TEST_F(AgentRegistryTest, ANameBelongsToTheStreamThatHadItLast) {
  EXPECT_TRUE(registry_.MayBeNameOf("a", "two"));
  ASSERT_TRUE(Connects(Agent(0, false, "one")));
  EXPECT_TRUE(registry_.MayBeNameOf("a", "one"));
  EXPECT_FALSE(registry_.MayBeNameOf("a", "two"));
}

}  // namespace
}  // namespace perfd::daemon
