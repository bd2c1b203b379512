// A dry run prepares the loops of ranks that nobody may touch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/experiment/node_experimenter.h"
#include "agent/experiment/preparation.h"
#include "core/base/clock.h"
#include "tests/unit/experiment/own_loop.h"

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Fails the test when it is asked for anything that would stop, alter or fork its rank.
class UntouchableInjector final : public RankInjector {
 public:
  explicit UntouchableInjector(ShadowPrediction prediction) : prediction_(std::move(prediction)) {}

  absl::StatusOr<std::vector<InstalledLoop>> Rehearse(std::vector<LoopToInject> loops) override {
    std::vector<InstalledLoop> installed;
    for (const LoopToInject& loop : loops) {
      InstalledLoop out;
      if (loop.loop_id == "loop2") out.status = absl::FailedPreconditionError("it calls malloc");
      out.refusals.push_back({"FP", 0, "no arithmetic", 1});
      for (const VariantName& name : loop.variants) {
        if (name.Text() == "FP") continue;
        out.names.push_back(name);
        CodeCopy& copy = out.copies.emplace_back();
        if (name.Text() != "NO_DIV") copy.changed.resize(1);
      }
      out.in_situ = absl::FailedPreconditionError("it stores");
      if (loop.loop_id == "loop0") out.in_situ = absl::OkStatus();
      out.in_situ_copies.assign(out.copies.size(), true);
      out.in_situ_copies.back() = false;
      installed.push_back(std::move(out));
    }
    return installed;
  }
  ShadowPrediction PredictShadow() override { return prediction_; }
  std::optional<RuntimeAddress> OriginalAddress(RuntimeAddress) const override {
    return std::nullopt;
  }
  InjectionCost cost() const override { return {}; }

  absl::StatusOr<std::vector<InstalledLoop>> Install(std::vector<LoopToInject>) override {
    return Touched("Install");
  }
  absl::StatusOr<EntryCount> CountEntries(int32_t, int64_t) override {
    return Touched("TakeCensus");
  }
  absl::StatusOr<ShadowAnswer> RunShadow(const ShadowRequest&) override {
    return Touched("RunShadow");
  }
  absl::StatusOr<std::vector<uint64_t>> TimeLive(int32_t, int32_t, int64_t) override {
    return Touched("TimeLive");
  }
  absl::Status SetPatched(int32_t, bool) override { return Touched("SetPatched"); }
  absl::Status Uninstall() override { return Touched("Uninstall"); }

 private:
  static absl::Status Touched(const char* call) {
    ADD_FAILURE() << "a dry run called " << call;
    return absl::InternalError(call);
  }
  const ShadowPrediction prediction_;
};

class DryRunTest : public ::testing::Test {
 protected:
  DryRunTest() {
    prediction_.fork_ns = 20 * kNsPerMs;
    prediction_.later_fault_ns = 5 * kNsPerMs;
    request_.node = "n1";
    request_.plan.profile_id = "p1";
    request_.plan.variants = {"LS", "FP", "DL1", "NO_DIV"};
    request_.plan.budget.shadow_ns = 100 * kNsPerMs;
    request_.plan.dry_run = true;
    request_.ranks.resize(1);
    request_.ranks[0].rank = RankOf(rank_.pid(), 3);
    for (int i = 0; i < 4; ++i) {
      request_.plan.loops.push_back(OwnTarget(i));
      request_.ranks[0].loops.push_back(OwnPlace(i));
    }
    request_.ranks[0].loops[1].refusal = "the rank runs another build";
  }

  ExperimentUpdate Run() {
    ExperimenterOptions options;
    options.clock = &clock_;
    options.disable_file = disable_file_;
    options.open_injector =
        [this](const RankInfo&,
               InjectorOptions injector) -> absl::StatusOr<std::unique_ptr<RankInjector>> {
      EXPECT_EQ(injector.tracer, nullptr);
      if (!open_status_.ok()) return open_status_;
      return std::make_unique<UntouchableInjector>(prediction_);
    };
    NodeExperimenter experimenter(std::move(options));
    EXPECT_FALSE(experimenter.Finished());
    experimenter.Begin(request_);
    for (int i = 0; i < 20'000 && !experimenter.Finished(); ++i)
      absl::SleepFor(absl::Milliseconds(1));
    EXPECT_TRUE(experimenter.Finished());
    ExperimentUpdate update = experimenter.Drain();
    experimenter.End();
    const ExperimentUpdate last = experimenter.Drain();
    EXPECT_THAT(last.measurements, IsEmpty());
    EXPECT_THAT(last.audit, IsEmpty());
    std::sort(update.measurements.begin(), update.measurements.end(),
              [](const auto& a, const auto& b) { return a.loop_id < b.loop_id; });
    return update;
  }

  const SystemClock clock_;
  const SleepingRank rank_;
  ShadowPrediction prediction_;
  ExperimentRequest request_;
  absl::Status open_status_;
  std::string disable_file_;
};

TEST_F(DryRunTest, SaysWhatWouldBePatchedAndWhatNotAndTouchesNothing) {
  if (MeasureTicksPerNs() <= 0) GTEST_SKIP() << "the time stamp counter is not invariant here";
  const ExperimentUpdate update = Run();
  EXPECT_THAT(update.audit, IsEmpty());
  EXPECT_THAT(update.notices, IsEmpty());
  ASSERT_THAT(update.measurements, SizeIs(4));
  for (const size_t i : {size_t{0}, size_t{3}}) {
    const LoopMeasurement& open = update.measurements[i];
    EXPECT_EQ(open.state, MeasureState::kOpen) << open.reason;
    EXPECT_THAT(open.open, ElementsAre("LS", "DL1"));
    ASSERT_THAT(open.refusals, SizeIs(2));
    EXPECT_EQ(open.refusals[0].variant, "FP");
    EXPECT_EQ(open.refusals[1].variant, "NO_DIV");
    EXPECT_THAT(open.refusals[1].reason, HasSubstr("changes no instruction"));
    EXPECT_EQ(open.rank, 3);
    EXPECT_EQ(open.provenance, Provenance::kEstimated);
    EXPECT_EQ(open.cost, InjectionCost{});
    // 70 of 100 ms are planned for; fork and later faults take their part of them.
    EXPECT_EQ(open.predicted, (PredictedCost{20 * kNsPerMs, 5 * kNsPerMs, 45 * kNsPerMs}));
  }
  EXPECT_EQ(update.measurements[1].state, MeasureState::kRefused);
  EXPECT_EQ(update.measurements[1].reason, "the rank runs another build");
  EXPECT_EQ(update.measurements[1].predicted, PredictedCost{});
  EXPECT_EQ(update.measurements[2].state, MeasureState::kRefused);
  EXPECT_EQ(update.measurements[2].reason, "it calls malloc");
}

TEST_F(DryRunTest, SaysWhereCopiesWouldRunInTheRankAndWhereNot) {
  if (MeasureTicksPerNs() <= 0) GTEST_SKIP() << "the time stamp counter is not invariant here";
  request_.plan.recovery = true;
  const ExperimentUpdate update = Run();
  ASSERT_THAT(update.measurements, SizeIs(4));
  EXPECT_EQ(update.measurements[0].protocol, kInSituProtocol);
  EXPECT_EQ(update.measurements[0].refusals.back().variant, "NO_DIV");
  EXPECT_THAT(update.measurements[0].refusals.back().reason, HasSubstr("in the rank itself"));
  EXPECT_EQ(update.measurements[2].protocol, "") << "refused altogether";
  EXPECT_EQ(update.measurements[3].protocol, "");
  EXPECT_EQ(update.measurements[3].refusals.back().variant, "in place");
  EXPECT_EQ(update.measurements[3].refusals.back().reason, "it stores; measured in shadows");
  request_.plan.recovery = false;
  EXPECT_EQ(Run().measurements[0].protocol, "");
}

TEST_F(DryRunTest, AForkLongerThanItsRoomLeavesNoneForRuns) {
  if (MeasureTicksPerNs() <= 0) GTEST_SKIP() << "the time stamp counter is not invariant here";
  prediction_.fork_ns = 90 * kNsPerMs;
  EXPECT_EQ(Run().measurements[0].predicted.most_run_ns, 0);
}

TEST_F(DryRunTest, ARankThatMayNotBeForkedRefusesItsLoops) {
  if (MeasureTicksPerNs() <= 0) GTEST_SKIP() << "the time stamp counter is not invariant here";
  prediction_.status = absl::FailedPreconditionError("a shadow needs 64 MB of memory");
  const ExperimentUpdate update = Run();
  EXPECT_EQ(update.measurements[0].state, MeasureState::kRefused);
  EXPECT_EQ(update.measurements[0].reason, "a shadow needs 64 MB of memory");
  EXPECT_THAT(update.measurements[0].open, IsEmpty());
  EXPECT_EQ(update.measurements[2].reason, "it calls malloc");  // the nearer reason
}

TEST_F(DryRunTest, ARankThatMayNotBeTouchedIsAnAnswerNotATrouble) {
  open_status_ = absl::FailedPreconditionError("a seccomp filter watches its system calls");
  const ExperimentUpdate update = Run();
  EXPECT_THAT(update.notices, IsEmpty());
  ASSERT_THAT(update.measurements, SizeIs(4));
  for (const LoopMeasurement& loop : update.measurements) {
    EXPECT_EQ(loop.state, MeasureState::kRefused);
    EXPECT_FALSE(loop.reason.empty());
  }
}

TEST_F(DryRunTest, TheKillSwitchIsARefusalToo) {
  disable_file_ = absl::StrCat(::testing::TempDir(), "/dry-run-disabled-", getpid());
  std::ofstream(disable_file_) << "no\n";
  const ExperimentUpdate update = Run();
  std::filesystem::remove(disable_file_);
  ASSERT_THAT(update.measurements, SizeIs(4));
  EXPECT_EQ(update.measurements[0].state, MeasureState::kRefused);
  EXPECT_THAT(update.measurements[0].reason, HasSubstr(disable_file_));
}

}  // namespace
}  // namespace perfd::agent
