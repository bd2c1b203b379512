// Profiles that last until perfd knows.
#include "tests/unit/daemon/control/control_fixture.h"

namespace perfd::daemon {
namespace {

const MeasureLoop kLoop = {"id", "key", "module", "/bin/app", 0x1000, 0x1010};

class UntilKnownTest : public ControlTest {
 protected:
  static ProfileSpec Spec() {
    ProfileSpec spec = CommandSpec();
    spec.until_known = true;
    spec.duration_ns = 600 * kSecond;
    return spec;
  }

  // One node, a second after another: a window, and what is hot.
  void Go(const std::string& id, int seconds, const LoopLearning& knowledge) {
    for (int i = 0; i < seconds; ++i) {
      if (i % 5 == 0) Window("a", id, ++sequence_);
      Pass(kSecond);
      if (!table_.WantingLoops(now()).empty()) Record(table_.HotLoops(id, {kLoop}, now()));
      if (table_.WantingHeat(now()).empty()) continue;
      HeatedLoop loop = {.loop = kLoop, .heat = {.id = "id"}, .knowledge = knowledge};
      loop.heat.whole_ns = loop.heat.recent_ns = 1'000'000'000;
      loop.heat.recent_samples = 500;
      Record(table_.Heat(id, {.loops = {loop}, .shares = shares_}, now()));
    }
  }

  std::string Begin(const ProfileSpec& spec) {
    Connect("a");
    const std::string id = Submit(spec);
    Report("a", id, Phase::kSampling, 1);
    return id;
  }

  uint64_t sequence_ = 0;
  ShareKnowledge shares_;
};

TEST_F(UntilKnownTest, TheMaximumTravelsToTheAgentAndAStopEndsIt) {
  const std::string id = Begin(Spec());
  ASSERT_EQ(All<StartNode>().size(), size_t{1});
  EXPECT_EQ(All<StartNode>()[0].remaining_ns, 600 * kSecond);
  Go(id, 60, {.settled = false, .open_ratio = 0.5, .learnt = 3});
  EXPECT_TRUE(All<StopNode>().empty());
  const ProfileStatus status = *table_.Status(id, now());
  EXPECT_EQ(status.course.loops.hot, 1);
  EXPECT_EQ(status.course.loops.known, 0);
  EXPECT_GT(status.course.loops.left_ns, 30 * kSecond);
  EXPECT_LT(status.course.loops.left_ns, 60 * kSecond);
  EXPECT_NEAR(status.course.progress_ratio, 0.55, 0.1);
  Go(id, 3, {.settled = true, .open_ratio = 0, .learnt = 31});
  ASSERT_EQ(All<StopNode>().size(), size_t{1});
  EXPECT_EQ(All<StopNode>()[0].reason, "every hot loop is known");
  Report("a", id, Phase::kFinished, 1, sequence_);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
  EXPECT_EQ(Finalising()->course.end, EndReason::kKnown);
  EXPECT_EQ(Finalising()->course.loops.known, 1);
}

TEST_F(UntilKnownTest, AFixedDurationIsKept) {
  const std::string id = Begin(CommandSpec());
  Go(id, 50, {.settled = true, .open_ratio = 0, .learnt = 31});
  EXPECT_TRUE(All<StopNode>().empty());
  EXPECT_EQ(table_.Status(id, now())->course.loops.known, 1);
  Go(id, 10, {.settled = true, .open_ratio = 0, .learnt = 31});
  Report("a", id, Phase::kFinished, 1, sequence_);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->course.end, EndReason::kTime);
}

TEST_F(UntilKnownTest, NothingIsWaitedForThatDoesNotCome) {
  const std::string id = Begin(Spec());
  Go(id, 129, {.settled = false, .open_ratio = 0.5, .learnt = 3});
  EXPECT_TRUE(All<StopNode>().empty());
  Go(id, 8, {.settled = false, .open_ratio = 0.5, .learnt = 3});
  ASSERT_EQ(All<StopNode>().size(), size_t{1});
  EXPECT_EQ(All<StopNode>()[0].reason, "nothing more was learnt for long");
}

TEST_F(UntilKnownTest, WithoutVariantsItsSharesDecide) {
  ProfileSpec spec = Spec();
  spec.variants.set.clear();
  shares_ = {.hot = 2, .widest = 0.1, .samples = 10};
  const std::string id = Begin(spec);
  Go(id, 30, {});
  EXPECT_TRUE(All<StopNode>().empty());
  EXPECT_EQ(table_.Status(id, now())->course.loops.hot, 2);
  shares_ = {.hot = 2, .widest = 0.01, .samples = 20};
  Go(id, 3, {});
  ASSERT_EQ(All<StopNode>().size(), size_t{1});
}

TEST_F(UntilKnownTest, ProcessesThatEndEndIt) {
  const std::string id = Begin(Spec());
  Go(id, 30, {});
  Report("a", id, Phase::kFinished, 1, sequence_);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->course.end, EndReason::kRanksEnded);
}

TEST_F(UntilKnownTest, WhoCancelsItIsWhoEndedIt) {
  const std::string id = Begin(Spec());
  Go(id, 30, {});
  Record(*table_.Cancel(id, "alice", now()));
  Report("a", id, Phase::kFinished, 1, sequence_);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kCancelled);
  EXPECT_EQ(Finalising()->course.end, EndReason::kCancelled);
}

TEST_F(UntilKnownTest, OfANodeThatIsAwayNobodyKnows) {
  Connect("b");
  const std::string id = Begin(Spec());
  Report("b", id, Phase::kSampling, 1);
  Window("b", id, 1);
  Go(id, 20, {});
  Record(table_.AgentGone("b", now()));
  Go(id, 30, {.settled = true, .open_ratio = 0, .learnt = 31});
  EXPECT_TRUE(All<StopNode>().empty());
  Connect("b");
  Report("b", id, Phase::kSampling, 1);
  Go(id, 19, {.settled = true, .open_ratio = 0, .learnt = 31});
  EXPECT_TRUE(All<StopNode>().empty()) << "it has told nothing yet";
  Go(id, 3, {.settled = true, .open_ratio = 0, .learnt = 31});
  EXPECT_EQ(All<StopNode>().size(), size_t{2});
}

TEST_F(UntilKnownTest, AnAgentThatComesBackAfterTheEndIsStopped) {
  const std::string id = Begin(Spec());
  Go(id, 20, {});
  Record(table_.AgentGone("a", now()));
  Connect("a");
  Report("a", id, Phase::kSampling, 1);
  Go(id, 24, {.settled = true, .open_ratio = 0, .learnt = 31});
  ASSERT_EQ(All<StopNode>().size(), size_t{1});
  Record(table_.AgentGone("a", now()));
  Connect("a");
  EXPECT_EQ(All<StopNode>().size(), size_t{2});
}

TEST_F(UntilKnownTest, ARestartOfPerfdGoesOnToTheSameEnd) {
  const std::string id = Begin(Spec());
  Go(id, 40, {.settled = true, .open_ratio = 0, .learnt = 31});
  ASSERT_EQ(All<StopNode>().size(), size_t{1});
  Pass(5 * kSecond);
  std::optional<ProfileStatus> saved;
  for (const SaveProfile& save : All<SaveProfile>()) saved = save.status;
  ASSERT_TRUE(saved.has_value());
  EXPECT_EQ(saved->course.end, EndReason::kKnown);
  SessionTable later(limits_);
  later.Restore(*saved, now());
  const Decisions back = later.AgentConnected(Agent("a"), now());
  ASSERT_EQ(back.size(), size_t{1});
  EXPECT_TRUE(std::holds_alternative<StopNode>(back[0]));
}

}  // namespace
}  // namespace perfd::daemon
