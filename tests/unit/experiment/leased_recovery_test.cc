// Recovery mode under a pause lease: its windows are no pauses that other nodes could share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "absl/time/clock.h"
#include "agent/experiment/node_experimenter.h"
#include "agent/experiment/preparation.h"
#include "core/base/clock.h"
#include "tests/unit/experiment/own_loop.h"
#include "tests/unit/experiment/placement_injector.h"

namespace perfd::agent {
namespace {

constexpr int32_t kNodes = 2;
constexpr double kBudget = 1e-4;

class LookingClock final : public Clock {
 public:
  int64_t MonotonicNs() const override { return now_ns.fetch_add(20'000) + 20'000; }
  int64_t UnixNs() const override { return 1'700'000'000 * kNsPerSecond; }
  mutable std::atomic<int64_t> now_ns = 1000 * kNsPerSecond;
};

class LeasedRecoveryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (MeasureTicksPerNs() <= 0) GTEST_SKIP() << "the time stamp counter is not invariant here";
  }

  void Run(int64_t duration_ns) {
    ExperimentRequest request;
    request.plan.profile_id = "p1";
    request.plan.variants = {"LS", "FP"};
    request.plan.repetitions = 9;
    request.plan.recovery = true;
    request.plan.budget.overhead_ratio = kBudget;
    request.plan.loops = {OwnTarget(0)};
    const int64_t now = clock_.now_ns;
    request.plan.lease = PauseLease{250 * kNsPerMs, 200 * kNsPerMs, kNodes, {now, now, 1000}};
    request.ranks = {{RankOf(sleeper_.pid(), 0), {OwnPlace(0)}}};
    request.begin_ns = now;
    request.end_ns = now + duration_ns;
    ExperimenterOptions options;
    options.clock = &clock_;
    options.leases = &lease_table_;
    options.allow_recovery = true;
    options.sleep = [this](int64_t ns) { clock_.now_ns += ns; };
    options.open_injector = [this](const RankInfo&, const InjectorOptions&) {
      auto injector = std::make_unique<PlacementInjector>();
      injector->on_recover = [this](const RecoveryRequest& wanted) { requests_.push_back(wanted); };
      return injector;
    };
    NodeExperimenter experimenter(std::move(options));
    experimenter.Begin(request);
    const int64_t deadline = SystemClock().MonotonicNs() + 30 * kNsPerSecond;
    while (!over_ && SystemClock().MonotonicNs() < deadline) {
      const ExperimentUpdate update = experimenter.Drain();
      for (const LoopMeasurement& loop : update.measurements) {
        over_ = loop.state != MeasureState::kOpen || !loop.reason.empty();
        last_ = loop;
      }
      absl::SleepFor(absl::Milliseconds(1));
    }
    experimenter.End();
  }

  SleepingRank sleeper_;
  LookingClock clock_;
  LeaseTable lease_table_;
  std::vector<RecoveryRequest> requests_;  // read after Run
  LoopMeasurement last_;
  bool over_ = false;
};

// The pauses of all nodes overlap, the daemon says; what recovery adds to this one is no pause.
TEST_F(LeasedRecoveryTest, IsBoughtAtThePriceThatIsPaid) {
  lease_table_.SetCharge("p1", 1);
  constexpr int64_t kDuration = 20 * kNsPerSecond;
  Run(kDuration);
  ASSERT_TRUE(over_);
  ASSERT_FALSE(requests_.empty());
  // 1 ms is earned ahead (InjectionBudget::kAheadNs); each node may have half of what is added beside the pauses.
  EXPECT_LE(requests_[0].most_added_ns, 700'000);
  EXPECT_GE(requests_[0].most_added_ns, 300'000) << "the budget must be what limits it";
  int64_t paid = 0;
  for (const RecoveryRequest& request : requests_) paid += kNodes * request.runs * int64_t{1000};
  EXPECT_LE(paid, static_cast<int64_t>(kBudget * static_cast<double>(kDuration)));
}

}  // namespace
}  // namespace perfd::agent
