// What a profile orders when other loops become hot.
#include "tests/unit/daemon/control/control_fixture.h"

namespace perfd::daemon {
namespace {

MeasureLoop Loop(const std::string& id) {
  return {id, "key-" + id, "module", "/bin/app", 0x1000, 0x1010};
}

HeatedLoop Heated(const std::string& id, uint64_t recent) {
  return {Loop(id), {.id = id, .whole_ns = recent, .recent_ns = recent, .recent_samples = recent}};
}

class PhasesTest : public ControlTest {
 protected:
  // A profile that measures loop a.
  std::string Begin(ProfileSpec spec = CommandSpec()) {
    Connect("n");
    const std::string id = Submit(spec);
    Report("n", id, Phase::kSampling, 1);
    Window("n", id, 1);
    Pass(10 * kSecond);
    Record(table_.HotLoops(id, {Loop("a")}, now()));
    return id;
  }
  // Whoever ticks the table asks every two seconds.
  void Live(const std::string& id, int64_t seconds, const std::vector<HeatedLoop>& heat) {
    for (int64_t i = 0; i < seconds; ++i) {
      Pass(kSecond);
      if (!table_.WantingHeat(now()).empty()) Record(table_.Heat(id, {.loops = heat}, now()));
    }
  }
  static std::vector<std::string> Ids(const MeasureNode& node) {
    std::vector<std::string> ids;
    for (const MeasureLoop& loop : node.order.loops) ids.push_back(loop.loop_id);
    return ids;
  }
};

using Names = std::vector<std::string>;

TEST_F(PhasesTest, ANewPhaseIsOrderedWholeAndTheOldOneIsGivenUp) {
  const std::string id = Begin();
  ASSERT_EQ(All<MeasureNode>().size(), size_t{1});
  Live(id, 6, {Heated("a", 500), Heated("b", 0)});
  EXPECT_EQ(All<MeasureNode>().size(), size_t{1});
  Live(id, 2, {Heated("a", 400), Heated("b", 600)});
  ASSERT_EQ(All<MeasureNode>().size(), size_t{2});
  EXPECT_EQ(Ids(All<MeasureNode>()[1]), (Names{"b", "a"}));  // heaviest first
  Live(id, 20, {Heated("a", 0), Heated("b", 1000)});
  const auto orders = All<MeasureNode>();
  ASSERT_EQ(orders.size(), size_t{3});
  EXPECT_EQ(Ids(orders[2]), (Names{"b"}));
  EXPECT_EQ(orders[2].order.loops[0], Loop("b"));
  EXPECT_EQ(orders[2].order.variants, orders[0].order.variants);
  EXPECT_EQ(orders[2].order.budget, orders[0].order.budget);
  EXPECT_LT(orders[0].order.revision, orders[1].order.revision);
  EXPECT_LT(orders[1].order.revision, orders[2].order.revision);
  EXPECT_EQ(State(id), ProfileState::kInjecting);
}

TEST_F(PhasesTest, IsAskedForEveryTwoSecondsWhileInjecting) {
  Connect("n");
  const std::string id = Submit();
  Report("n", id, Phase::kSampling, 1);
  Window("n", id, 1);
  Pass(10 * kSecond);
  EXPECT_TRUE(table_.WantingHeat(now()).empty());  // nothing was ordered yet
  Record(table_.HotLoops(id, {Loop("a")}, now()));
  EXPECT_TRUE(table_.WantingHeat(now()).empty());
  Pass(2 * kSecond - 1);
  EXPECT_TRUE(table_.WantingHeat(now()).empty());
  Pass(1);
  EXPECT_EQ(table_.WantingHeat(now()).size(), size_t{1});
  Record(table_.Heat(id, {}, now()));
  EXPECT_TRUE(table_.WantingHeat(now()).empty());
  Pass(2 * kSecond);
  EXPECT_EQ(table_.WantingHeat(now()).size(), size_t{1});
}

TEST_F(PhasesTest, NothingIsTakenUpShortlyBeforeTheEnd) {
  const std::string id = Begin();
  Pass(40 * kSecond - 1);  // the profile is 50 s old: 10 s are left
  EXPECT_EQ(table_.WantingHeat(now()).size(), size_t{1});
  Pass(1);
  EXPECT_TRUE(table_.WantingHeat(now()).empty());
  Record(table_.Heat(id, {.loops = {Heated("b", 1000)}}, now()));
  EXPECT_EQ(All<MeasureNode>().size(), size_t{1});
}

TEST_F(PhasesTest, ANodeThatComesBackIsToldTheLatestOrder) {
  const std::string id = Begin();
  Live(id, 2, {Heated("a", 400), Heated("b", 600)});
  Record(table_.AgentGone("n", now()));
  const size_t before = All<MeasureNode>().size();
  Live(id, 2, {Heated("a", 0), Heated("b", 500), Heated("c", 500)});
  EXPECT_EQ(All<MeasureNode>().size(), before);  // nobody is there
  Connect("n");
  ASSERT_EQ(All<MeasureNode>().size(), before + 1);
  EXPECT_EQ(Ids(All<MeasureNode>().back()), (Names{"b", "c", "a"}));
}

TEST_F(PhasesTest, AllLoopsMayBeGivenUpAndTheFirstLookIsNotRepeated) {
  const std::string id = Begin();
  HeatedLoop settled = Heated("settled", 1000);
  settled.heat.settled = true;
  Live(id, 20, {Heated("a", 0), settled});
  ASSERT_EQ(All<MeasureNode>().size(), size_t{2});
  EXPECT_TRUE(All<MeasureNode>()[1].order.loops.empty());
  EXPECT_TRUE(table_.WantingLoops(now()).empty());
  Live(id, 2, {Heated("a", 500), settled});
  EXPECT_EQ(Ids(All<MeasureNode>().back()), (Names{"a"}));
}

TEST_F(PhasesTest, ADryRunIsOrderedOnce) {
  ProfileSpec spec = CommandSpec();
  spec.dry_run = true;
  const std::string id = Begin(spec);
  Live(id, 10, {Heated("b", 1000)});
  EXPECT_EQ(All<MeasureNode>().size(), size_t{1});
}

TEST_F(PhasesTest, ACancelledProfileOrdersNothingMore) {
  const std::string id = Begin();
  Record(*table_.Cancel(id, "alice", now()));
  Live(id, 4, {Heated("b", 1000)});
  EXPECT_EQ(All<MeasureNode>().size(), size_t{1});
}

TEST_F(PhasesTest, RevisionsGrowAlsoOverARestartOfTheDaemon) {
  const std::string id = Begin();
  const uint64_t before = All<MeasureNode>().back().order.revision;
  Pass(kSecond);
  SessionTable restarted(limits_);
  restarted.Restore(*table_.Status(id, now()), now());
  restarted.AgentConnected(Agent("n"), now());
  const Decisions orders = restarted.HotLoops(id, {Loop("b")}, now());
  ASSERT_FALSE(orders.empty());
  const auto* order = std::get_if<MeasureNode>(&orders.back());
  ASSERT_NE(order, nullptr);
  EXPECT_EQ(Ids(*order), (Names{"b"}));
  EXPECT_GT(order->order.revision, before);
}

}  // namespace
}  // namespace perfd::daemon
