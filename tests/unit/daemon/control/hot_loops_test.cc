// When and with what a profile orders variants.
#include "tests/unit/daemon/control/control_fixture.h"

namespace perfd::daemon {
namespace {

using HotLoopsTest = ControlTest;

const std::vector<MeasureLoop> kLoops = {{"id", "key", "module", "/bin/app", 0x1000, 0x1010}};

TEST_F(HotLoopsTest, AskedForAfterALookAndOrderedOnce) {
  Connect("a");
  const std::string id = Submit();
  Report("a", id, Phase::kSampling, 1);
  Window("a", id, 1);
  Pass(10 * kSecond - 1);
  EXPECT_TRUE(table_.WantingLoops(now()).empty());
  Pass(1);
  ASSERT_EQ(table_.WantingLoops(now()).size(), size_t{1});
  Record(table_.HotLoops(id, kLoops, now()));
  EXPECT_TRUE(table_.WantingLoops(now()).empty());
  EXPECT_EQ(State(id), ProfileState::kInjecting);
  const auto orders = All<MeasureNode>();
  ASSERT_EQ(orders.size(), size_t{1});
  EXPECT_EQ(orders[0].node, "a");
  EXPECT_EQ(orders[0].order.profile_id, id);
  EXPECT_EQ(orders[0].order.loops, kLoops);
  EXPECT_EQ(orders[0].order.variants, CommandSpec().variants.set);
  Record(table_.HotLoops(id, kLoops, now()));
  EXPECT_EQ(All<MeasureNode>().size(), size_t{1});
}

TEST_F(HotLoopsTest, ShortProfilesLookForAQuarterOfTheirTime) {
  Connect("a");
  ProfileSpec spec = CommandSpec();
  spec.duration_ns = 8 * kSecond;
  const std::string id = Submit(spec);
  Report("a", id, Phase::kSampling, 1);
  Window("a", id, 1);
  Pass(2 * kSecond - 1);
  EXPECT_TRUE(table_.WantingLoops(now()).empty());
  Pass(1);
  EXPECT_EQ(table_.WantingLoops(now()).size(), size_t{1});
}

TEST_F(HotLoopsTest, NoneYetMeansAskAgainLater) {
  Connect("a");
  const std::string id = Submit();
  Report("a", id, Phase::kSampling, 1);
  Window("a", id, 1);
  Pass(10 * kSecond);
  Record(table_.HotLoops(id, {}, now()));
  EXPECT_TRUE(table_.WantingLoops(now()).empty());
  EXPECT_EQ(State(id), ProfileState::kSampling);
  Pass(2 * kSecond);
  EXPECT_EQ(table_.WantingLoops(now()).size(), size_t{1});
}

TEST_F(HotLoopsTest, NodesShareTheBudgetAndAReturningOneIsToldAgain) {
  Connect("a");
  Connect("b");
  const std::string id = Submit();
  for (const char* node : {"a", "b"}) {
    Report(node, id, Phase::kSampling, 1);
    Window(node, id, 1);
  }
  Pass(10 * kSecond);
  Record(table_.HotLoops(id, kLoops, now()));
  ASSERT_EQ(All<MeasureNode>().size(), size_t{2});
  EXPECT_DOUBLE_EQ(All<MeasureNode>()[0].order.budget.overhead_ratio, 0.01);
  Record(table_.AgentGone("b", now()));
  Connect("b");
  ASSERT_EQ(All<MeasureNode>().size(), size_t{3});
  EXPECT_EQ(All<MeasureNode>()[2].node, "b");
}

TEST_F(HotLoopsTest, NothingIsOrderedWithoutVariantsOrAfterACancel) {
  Connect("a");
  ProfileSpec spec = CommandSpec();
  spec.variants.set.clear();
  const std::string sampled = Submit(spec);
  Report("a", sampled, Phase::kSampling, 1);
  Window("a", sampled, 1);
  Pass(20 * kSecond);
  EXPECT_TRUE(table_.WantingLoops(now()).empty());
  const std::string cancelled = Submit();
  Report("a", cancelled, Phase::kSampling, 1);
  Window("a", cancelled, 1);
  Pass(10 * kSecond);
  Record(*table_.Cancel(cancelled, "alice", now()));
  EXPECT_TRUE(table_.WantingLoops(now()).empty());
  Record(table_.HotLoops(cancelled, kLoops, now()));
  EXPECT_TRUE(All<MeasureNode>().empty());
}

ProfileSpec DryRunSpec() {
  ProfileSpec spec = CommandSpec();
  spec.dry_run = true;
  return spec;
}

TEST_F(HotLoopsTest, ADryRunOrdersADryRunAndIsNeverInjecting) {
  Connect("a");
  const std::string id = Submit(DryRunSpec());
  Report("a", id, Phase::kSampling, 1);
  Window("a", id, 1);
  Pass(10 * kSecond);
  Record(table_.HotLoops(id, kLoops, now()));
  ASSERT_EQ(All<MeasureNode>().size(), size_t{1});
  EXPECT_TRUE(All<MeasureNode>()[0].order.dry_run);
  EXPECT_EQ(State(id), ProfileState::kSampling);
  // The node has nothing more to tell: so is the profile, long before its duration.
  Window("a", id, 2);
  Report("a", id, Phase::kFinished, 1, 2);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
}

TEST_F(HotLoopsTest, AProfileOrdersNoDryRun) {
  Connect("a");
  const std::string id = Submit();
  Report("a", id, Phase::kSampling, 1);
  Window("a", id, 1);
  Pass(10 * kSecond);
  Record(table_.HotLoops(id, kLoops, now()));
  ASSERT_EQ(All<MeasureNode>().size(), size_t{1});
  EXPECT_FALSE(All<MeasureNode>()[0].order.dry_run);
}

TEST_F(HotLoopsTest, ADryRunSamplesForItsLookNotForTheDuration) {
  Connect("a");
  ProfileSpec spec = DryRunSpec();
  spec.duration_ns = 3600 * kSecond;
  const std::string id = Submit(spec);
  ASSERT_EQ(All<StartNode>().size(), size_t{1});
  EXPECT_EQ(All<StartNode>()[0].remaining_ns, 40 * kSecond);
  EXPECT_EQ(All<StartNode>()[0].spec.duration_ns, 3600 * kSecond);
  Report("a", id, Phase::kSampling, 1);
  Window("a", id, 1);
  Pass(5 * kSecond);
  EXPECT_DOUBLE_EQ(table_.Status(id, now())->course.progress_ratio, 0.5);
  Pass(60 * kSecond);
  EXPECT_DOUBLE_EQ(table_.Status(id, now())->course.progress_ratio, 1);
}

}  // namespace
}  // namespace perfd::daemon
