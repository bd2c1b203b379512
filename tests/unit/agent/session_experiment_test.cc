#include "agent/pipeline/session_experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/notification.h"
#include "tests/unit/agent/fake_code_source.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kPatience = absl::Seconds(20);

struct ExperimenterLog {
  std::vector<ExperimentRequest> begun;
  std::vector<ExperimentRequest> revised;
  int taken = 0;
  int ended = 0;
};

class FakeExperimenter final : public Experimenter {
 public:
  explicit FakeExperimenter(ExperimenterLog* log) : log_(log) {}
  void Begin(ExperimentRequest request) override { log_->begun.push_back(std::move(request)); }
  void Revise(ExperimentRequest request) override { log_->revised.push_back(std::move(request)); }
  ExperimentUpdate Drain() override {
    ++log_->taken;
    ExperimentUpdate update;
    update.measurements.resize(static_cast<size_t>(log_->taken));
    return update;
  }
  void End() override { ++log_->ended; }
  std::optional<RuntimeAddress> OriginalAddress(int32_t pid,
                                                RuntimeAddress address) const override {
    return address + static_cast<uint64_t>(pid);
  }

 private:
  ExperimenterLog* const log_;
};

class SessionExperimentTest : public ::testing::Test {
 protected:
  SessionExperimentTest()
      : resolver_(std::make_unique<Resolver>(
            [this](const RawModule&, ModuleDetail) -> absl::StatusOr<std::unique_ptr<CodeSource>> {
              return std::make_unique<FakeCodeSource>(std::vector{LoopyFunction()}, &lookups_);
            },
            clock_)),
        experiment_(std::make_unique<SessionExperiment>(Maker(), resolver_.get())) {}
  ~SessionExperimentTest() override { Release(); }

  MakeExperimenter Maker() {
    return [this] { return std::make_unique<FakeExperimenter>(&log_); };
  }

  static MeasureOrder Order(const std::string& profile, uint64_t revision = 0) {
    MeasureOrder order;
    order.profile_id = profile;
    order.revision = revision;
    order.variants = {"LS"};
    order.loops = {{.loop_id = "a",
                    .location_key = "ka",
                    .module_id = "abcd",
                    .module_path = "/app",
                    .function_low = 0x400100,
                    .header = 0x400140},
                   {.loop_id = "b",
                    .location_key = "kb",
                    .module_id = "ef01",
                    .module_path = "/other",
                    .function_low = 0,
                    .header = 0}};
    return order;
  }

  static std::vector<ProcessImage> Images(int ranks = 1) {
    std::vector<ProcessImage> images;
    for (int32_t rank = 0; rank < ranks; ++rank) {
      ProcessImage& image = images.emplace_back();
      image.rank.pid = 100 + rank;
      image.rank.rank = rank;
      image.executable = "/app";
      CodeMapping mapping;
      mapping.start = 0x400000;
      mapping.end = 0x500000;
      mapping.inode = 5;
      mapping.path = "/app";
      image.mappings = {mapping};
    }
    return images;
  }

  static ExperimentRequest Request() {
    ExperimentRequest request;
    request.requester = "alice";
    request.node = "n1";
    request.begin_ns = 3;
    request.end_ns = 9;
    return request;
  }

  // Until the resolver has done all it was asked so far.
  void AwaitResolver() {
    Notification done;
    ASSERT_TRUE(resolver_->Post([&](CodeIndex&) { done.Notify(); }));
    ASSERT_TRUE(done.WaitForNotificationWithTimeout(kPatience));
  }

  // The resolver stands still until Release.
  void Block() {
    Notification stands;
    ASSERT_TRUE(resolver_->Post([&stands, this](CodeIndex&) {
      stands.Notify();
      release_.WaitForNotificationWithTimeout(kPatience);
    }));
    ASSERT_TRUE(stands.WaitForNotificationWithTimeout(kPatience));
  }
  void Release() {
    if (!release_.HasBeenNotified()) release_.Notify();
  }

  void BeginAll(int ranks = 1) {
    experiment_->Order(Order("p1"));
    experiment_->Locate(Images(ranks), Request());
    AwaitResolver();
    experiment_->Advance();
  }

  FakeClock clock_;
  int lookups_ = 0;
  ExperimenterLog log_;
  Notification release_;
  std::unique_ptr<Resolver> resolver_;
  std::unique_ptr<SessionExperiment> experiment_;
};

TEST_F(SessionExperimentTest, BeginsOnceTheLoopsAreFound) {
  EXPECT_FALSE(experiment_->Waits());
  experiment_->Order(Order("p1"));
  EXPECT_TRUE(experiment_->Waits());
  experiment_->Locate(Images(2), Request());
  EXPECT_FALSE(experiment_->Waits());
  AwaitResolver();
  EXPECT_FALSE(experiment_->active());
  experiment_->Advance();
  ASSERT_TRUE(experiment_->active());
  ASSERT_THAT(log_.begun, SizeIs(1));
  const ExperimentRequest& request = log_.begun[0];
  EXPECT_EQ(request.plan, Order("p1"));
  EXPECT_EQ(request.requester, "alice");
  EXPECT_EQ(request.node, "n1");
  EXPECT_EQ(request.begin_ns, 3);
  EXPECT_EQ(request.end_ns, 9);
  ASSERT_THAT(request.ranks, SizeIs(2));
  for (int32_t rank = 0; rank < 2; ++rank) {
    const RankLoops& places = request.ranks[static_cast<size_t>(rank)];
    EXPECT_EQ(places.rank.pid, 100 + rank);
    ASSERT_THAT(places.loops, SizeIs(2));
    EXPECT_EQ(places.loops[0].function.name, "kernel");
    EXPECT_THAT(places.loops[1].refusal, HasSubstr("has not loaded /other"));
  }
  experiment_->Advance();
  EXPECT_THAT(log_.begun, SizeIs(1));
}

TEST_F(SessionExperimentTest, DoesNotWaitForTheResolver) {
  Block();
  experiment_->Order(Order("p1"));
  experiment_->Locate(Images(), Request());
  experiment_->Advance();
  EXPECT_FALSE(experiment_->active());
  EXPECT_FALSE(experiment_->Waits());  // nor looks again
  Release();
  AwaitResolver();
  experiment_->Advance();
  EXPECT_TRUE(experiment_->active());
}

TEST_F(SessionExperimentTest, AnOrderThatIsRepeatedIsIgnored) {
  experiment_->Order(Order("p1"));
  experiment_->Order(Order("p2"));
  experiment_->Locate(Images(), Request());
  AwaitResolver();
  experiment_->Advance();
  experiment_->Order(Order("p3"));
  EXPECT_FALSE(experiment_->Waits());
  experiment_->Advance();
  ASSERT_THAT(log_.begun, SizeIs(1));
  EXPECT_EQ(log_.begun[0].plan.profile_id, "p1");
}

// Gives an order, looks for its loops when asked to, and hands them over.
#define ORDER(revision)                       \
  experiment_->Order(Order("p1", revision));  \
  if (experiment_->Waits()) {                 \
    experiment_->Locate(Images(), Request()); \
    AwaitResolver();                          \
  }                                           \
  experiment_->Advance()

TEST_F(SessionExperimentTest, AnOrderOfHigherRevisionIsHandedOnWithItsPlaces) {
  ORDER(5);
  ASSERT_THAT(log_.begun, SizeIs(1));
  EXPECT_THAT(log_.revised, IsEmpty());
  ORDER(6);
  EXPECT_THAT(log_.begun, SizeIs(1));
  ASSERT_THAT(log_.revised, SizeIs(1));
  const ExperimentRequest& request = log_.revised[0];
  EXPECT_EQ(request.plan.revision, 6u);
  ASSERT_THAT(request.ranks, SizeIs(1));
  ASSERT_THAT(request.ranks[0].loops, SizeIs(2));
  EXPECT_EQ(request.ranks[0].loops[0].function.name, "kernel");
  experiment_->Advance();
  EXPECT_THAT(log_.revised, SizeIs(1));
}

TEST_F(SessionExperimentTest, OrdersThatComeTwiceOrLateChangeNothing) {
  ORDER(5);
  ORDER(7);
  ASSERT_THAT(log_.revised, SizeIs(1));
  ORDER(7);
  EXPECT_FALSE(experiment_->Waits());
  ORDER(6);
  ORDER(5);
  ORDER(0);
  EXPECT_THAT(log_.begun, SizeIs(1));
  EXPECT_THAT(log_.revised, SizeIs(1));
}

TEST_F(SessionExperimentTest, OfOrdersThatComeDuringALookTheNewestIsNext) {
  Block();
  experiment_->Order(Order("p1", 1));
  experiment_->Locate(Images(), Request());
  experiment_->Order(Order("p1", 2));
  experiment_->Order(Order("p1", 3));
  EXPECT_FALSE(experiment_->Waits());  // one look at a time
  Release();
  AwaitResolver();
  experiment_->Advance();
  ASSERT_THAT(log_.begun, SizeIs(1));
  EXPECT_EQ(log_.begun[0].plan.revision, 1u);
  EXPECT_TRUE(experiment_->Waits());
  experiment_->Locate(Images(), Request());
  AwaitResolver();
  experiment_->Advance();
  ASSERT_THAT(log_.revised, SizeIs(1));
  EXPECT_EQ(log_.revised[0].plan.revision, 3u);
  EXPECT_FALSE(experiment_->Waits());
}

TEST_F(SessionExperimentTest, ALaterOrderCannotTurnADryRunIntoAnother) {
  MeasureOrder dry = Order("p1", 1);
  dry.dry_run = true;
  experiment_->Order(dry);
  experiment_->Order(Order("p1", 2));
  experiment_->Locate(Images(), Request());
  AwaitResolver();
  experiment_->Advance();
  ASSERT_THAT(log_.begun, SizeIs(1));
  EXPECT_TRUE(log_.begun[0].plan.dry_run);
}

TEST_F(SessionExperimentTest, LooksAgainWhenTheResolverHasNoRoom) {
  Block();
  while (resolver_->Post([](CodeIndex&) {})) {
  }
  experiment_->Order(Order("p1"));
  experiment_->Locate(Images(), Request());
  EXPECT_TRUE(experiment_->Waits());
  experiment_->Advance();
  EXPECT_FALSE(experiment_->active());
  Release();
  Notification done;
  while (!resolver_->Post([&](CodeIndex&) { done.Notify(); })) {
  }
  ASSERT_TRUE(done.WaitForNotificationWithTimeout(kPatience));
  experiment_->Locate(Images(), Request());
  AwaitResolver();
  experiment_->Advance();
  EXPECT_TRUE(experiment_->active());
}

TEST_F(SessionExperimentTest, NothingBeginsAfterTheEnd) {
  experiment_->Order(Order("p1"));
  experiment_->Locate(Images(), Request());
  AwaitResolver();
  experiment_->End();
  experiment_->Advance();
  EXPECT_FALSE(experiment_->active());
  EXPECT_THAT(log_.begun, IsEmpty());
}

TEST_F(SessionExperimentTest, AnOrderAfterTheEndWaitsForNothing) {
  experiment_->End();
  experiment_->Order(Order("p1"));
  EXPECT_FALSE(experiment_->Waits());
}

// Not looked for, or looked for in vain: whoever was ordered late must hear why nothing comes of it.
TEST_F(SessionExperimentTest, AnOrderThatTheEndOvertakesIsHandedOnWithoutPlaces) {
  ORDER(5);
  experiment_->Order(Order("p1", 6));
  experiment_->End();
  ASSERT_THAT(log_.revised, SizeIs(1));
  EXPECT_EQ(log_.revised[0].plan.revision, 6u);
  EXPECT_THAT(log_.revised[0].ranks, IsEmpty());
  experiment_->End();
  EXPECT_THAT(log_.revised, SizeIs(1));
}

TEST_F(SessionExperimentTest, AnOrderThatIsBeingLookedForAtTheEndIsHandedOnToo) {
  ORDER(5);
  experiment_->Order(Order("p1", 6));
  experiment_->Locate(Images(), Request());
  experiment_->End();
  ASSERT_THAT(log_.revised, SizeIs(1));
  EXPECT_EQ(log_.revised[0].plan.revision, 6u);
}

TEST_F(SessionExperimentTest, WithoutALateOrderTheEndHandsNothingOn) {
  ORDER(5);
  experiment_->End();
  EXPECT_THAT(log_.revised, IsEmpty());
}

TEST_F(SessionExperimentTest, NewsComeFromTheExperimenterAlsoAfterTheEnd) {
  EXPECT_THAT(experiment_->Drain().measurements, IsEmpty());
  EXPECT_EQ(log_.taken, 0);
  BeginAll();
  EXPECT_THAT(experiment_->Drain().measurements, SizeIs(1));
  experiment_->End();
  EXPECT_EQ(log_.ended, 1);
  EXPECT_THAT(experiment_->Drain().measurements, SizeIs(2));  // last words
}

TEST_F(SessionExperimentTest, AddressesOfCopiesOnlyWhileThereAreCopies) {
  EXPECT_EQ(experiment_->OriginalAddress(1, 10), std::nullopt);
  BeginAll();
  EXPECT_EQ(experiment_->OriginalAddress(1, 10), 11u);
}

TEST_F(SessionExperimentTest, WithoutAnExperimenterOrdersAreNotTaken) {
  SessionExperiment none(nullptr, resolver_.get());
  none.Order(Order("p1"));
  EXPECT_FALSE(none.Waits());
  none.Advance();
  none.End();
  EXPECT_FALSE(none.active());
}

TEST_F(SessionExperimentTest, ASessionWithoutRanksBeginsWithNone) {
  BeginAll(0);
  ASSERT_THAT(log_.begun, SizeIs(1));
  EXPECT_THAT(log_.begun[0].ranks, IsEmpty());
}

TEST_F(SessionExperimentTest, TheResolverMayOutliveTheSession) {
  Block();
  experiment_->Order(Order("p1"));
  experiment_->Locate(Images(), Request());
  experiment_.reset();
  Release();
  AwaitResolver();  // has written what it found to nobody
  EXPECT_GT(lookups_, 0);
}

}  // namespace
}  // namespace perfd::agent
