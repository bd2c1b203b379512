// A session that is ordered to measure loops, in a profile and in a dry run.
#include "core/base/notification.h"
#include "tests/unit/agent/session_fixture.h"

namespace perfd::agent {
namespace {

using Phase = NodeProgress::Phase;
using testing::HasSubstr;

// Finds something out in the moment it begins.
class FakeExperimenter final : public Experimenter {
 public:
  explicit FakeExperimenter(std::vector<ExperimentRequest>* begun) : begun_(begun) {}
  void Begin(ExperimentRequest request) override {
    finished_ = request.plan.dry_run;
    LoopMeasurement loop;
    loop.loop_id = "loop";
    update_.measurements = {loop};
    update_.stops = 3;
    update_.stop_ns = 7'000'000;
    begun_->push_back(std::move(request));
  }
  ExperimentUpdate Drain() override { return std::exchange(update_, {}); }
  void End() override {}
  bool Finished() const override { return finished_; }
  std::optional<RuntimeAddress> OriginalAddress(int32_t, RuntimeAddress) const override {
    return {};
  }

 private:
  std::vector<ExperimentRequest>* const begun_;
  ExperimentUpdate update_;
  bool finished_ = false;
};

class OrderedSessionTest : public SessionTest {
 protected:
  OrderedSessionTest() {
    tools_.make_experimenter = [this] { return std::make_unique<FakeExperimenter>(&begun_); };
    // Time passes when the resolver has done what it was asked.
    tools_.sleep = [this](int64_t ns) {
      Notification done;
      if (resolver_.Post([&done](CodeIndex&) { done.Notify(); })) done.WaitForNotification();
      clock_.now_ns += ns;
    };
    script_.on_drain = [](SampleSink& sink, int) { sink.OnSample(At(0x400144)); };
  }

  void RunWith(bool dry_order) {
    Session session(request_, tools_);
    MeasureOrder order;
    order.profile_id = request_.profile_id;
    order.dry_run = dry_order;
    session.Measure(order);
    session.Run();
  }

  int64_t CoveredNs() const {
    int64_t covered_ns = 0;
    for (const Window& window : output_.windows) covered_ns += window.duration_ns;
    return covered_ns;
  }

  std::vector<ExperimentRequest> begun_;
};

TEST_F(OrderedSessionTest, ADryRunEndsWhenEverythingIsKnown) {
  request_.spec.dry_run = true;
  RunWith(true);
  ASSERT_EQ(begun_.size(), 1u);
  EXPECT_TRUE(begun_[0].plan.dry_run);
  EXPECT_LT(CoveredNs(), request_.remaining_ns / 2);
  EXPECT_EQ(output_.update.back().phase, Phase::kFinished);
  size_t measurements = 0;
  for (const Window& window : output_.windows) measurements += window.findings.measurements.size();
  EXPECT_EQ(measurements, 1u);
}

TEST_F(OrderedSessionTest, AProfileGoesOnToItsEnd) {
  RunWith(false);
  ASSERT_EQ(begun_.size(), 1u);
  EXPECT_FALSE(begun_[0].plan.dry_run);
  EXPECT_EQ(CoveredNs(), request_.remaining_ns);
}

TEST_F(OrderedSessionTest, StopsOfRanksAreAmongTheCosts) {
  RunWith(false);
  OverheadFigures sum;
  for (const Window& window : output_.windows) sum += window.overhead;
  EXPECT_EQ(sum.stops, 3u);
  EXPECT_EQ(sum.stop_ns, 7'000'000u);
}

TEST_F(OrderedSessionTest, ADryRunThatNobodyMayAnswerEndsToo) {
  request_.spec.dry_run = true;
  tools_.make_experimenter = nullptr;
  RunWith(true);
  EXPECT_LT(CoveredNs(), request_.remaining_ns / 2);
  EXPECT_EQ(output_.update.back().phase, Phase::kFinished);
}

TEST_F(OrderedSessionTest, ADryRunStaysOneWhateverTheOrderSays) {
  request_.spec.dry_run = true;
  RunWith(false);
  ASSERT_EQ(begun_.size(), 1u);
  EXPECT_TRUE(begun_[0].plan.dry_run);
}

}  // namespace
}  // namespace perfd::agent
