#include "daemon/pipeline/agent_book.h"

#include <gtest/gtest.h>

namespace perfd {
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

class AgentBookTest : public testing::Test {
 protected:
  bool Connects(const AgentFacts& facts, int64_t at_ns = 0) {
    return book_.Connect(facts, std::make_shared<SilentLink>(), {at_ns, at_ns}).ok();
  }
  AgentBook book_;
};

TEST_F(AgentBookTest, TwoAgentsOfOneUserDoNotThrowEachOtherOut) {
  ASSERT_TRUE(Connects(Agent(1000, true, "one")));
  EXPECT_TRUE(Connects(Agent(1000, true, "one")));  // come back
  EXPECT_FALSE(Connects(Agent(1000, true, "two")));
  EXPECT_FALSE(Connects(Agent(1000, true, "two"), AgentBook::kSilentNs - 1));
  EXPECT_TRUE(Connects(Agent(1000, true, "two"), AgentBook::kSilentNs));
}

TEST_F(AgentBookTest, WhatItCanDoIsKnownBeforeTheFirstHeartbeat) {
  AgentFacts facts = Agent(0, false, "one");
  facts.can_inject = true;
  const auto connection = book_.Connect(facts, std::make_shared<SilentLink>(), {0, 0});
  EXPECT_TRUE(book_.Find(*connection)->status.health.can_inject);
}

TEST_F(AgentBookTest, ASignOfLifeCounts) {
  const auto connection =
      book_.Connect(Agent(1000, true, "one"), std::make_shared<SilentLink>(), {0, 0});
  AgentBook::Heard(*book_.Find(*connection), {1, 1});
  EXPECT_FALSE(Connects(Agent(1000, true, "two"), AgentBook::kSilentNs));
  EXPECT_TRUE(Connects(Agent(1000, true, "two"), AgentBook::kSilentNs + 1));
}

TEST_F(AgentBookTest, TheNodesOwnAgentOutranksAUsers) {
  ASSERT_TRUE(Connects(Agent(1000, true, "one")));
  EXPECT_TRUE(Connects(Agent(0, false, "own")));
  EXPECT_FALSE(Connects(Agent(1000, true, "one"), AgentBook::kSilentNs));
  EXPECT_FALSE(Connects(Agent(0, true, "roots-own")));
  EXPECT_TRUE(Connects(Agent(0, false, "spool-was-lost")));
}

TEST_F(AgentBookTest, ANameBelongsToTheStreamThatHadItLast) {
  EXPECT_TRUE(book_.MayBeNameOf("a", "two"));
  ASSERT_TRUE(Connects(Agent(0, false, "one")));
  EXPECT_TRUE(book_.MayBeNameOf("a", "one"));
  EXPECT_FALSE(book_.MayBeNameOf("a", "two"));
}

}  // namespace
}  // namespace perfd
