#include "core/analysis/trip_classes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/core/analysis/some_figures.h"

namespace perfd {
namespace {

// One shadow per trip count: REF takes ten cycles a trip, LS and FP the given shares of it.
class Instances {
 public:
  Instances& Add(uint64_t trips, double ls = 1, double fp = 0.2, double ctrl = 0.1) {
    ++shadow_;
    const double ref = 10 * static_cast<double>(trips);
    Run("REF", ref);
    for (const auto& [variant, part] :
         {std::pair("LS", ls), std::pair("FP", fp), std::pair("CTRL", ctrl)}) {
      Run(variant, part * ref);
      Run("REF", ref);
    }
    Run("COUNT", 2 * ref, trips);
    return *this;
  }
  Instances& Run(const char* variant, double cycles, uint64_t iterations = 0, int32_t thread = 0) {
    runs_.push_back({shadow_, static_cast<uint32_t>(runs_.size()), thread, variant, cycles,
                     iterations, RunOutcome::kOk});
    return *this;
  }
  std::vector<RunSample>& runs() { return runs_; }
  std::vector<TripClass> Classes() const { return TripClassesOf(runs_); }

 private:
  uint32_t shadow_ = 0;
  std::vector<RunSample> runs_;
};

std::vector<uint32_t> Sizes(const std::vector<TripClass>& classes) {
  std::vector<uint32_t> sizes;
  for (const TripClass& trips : classes) sizes.push_back(trips.instances);
  return sizes;
}

double Sat(const TripClass& trips, const std::string& variant) {
  for (const VariantFigures& figures : trips.figures) {
    if (figures.variant == variant) return figures.saturation.value;
  }
  return -1;
}

using Counts = std::vector<uint32_t>;

TEST(TripClasses, PartShortFromLongAndReduceEachAlone) {
  Instances instances;
  for (int i = 0; i < 4; ++i) instances.Add(3, 0.98, 0.97, 0.96).Add(4000, 0.95, 0.2);
  const auto classes = instances.Classes();
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(classes[0].shortest, 3u);
  EXPECT_EQ(classes[0].longest, 3u);
  EXPECT_EQ(classes[0].instances, 4u);
  EXPECT_EQ(classes[1].shortest, 4000u);
  EXPECT_NEAR(Sat(classes[0], "FP"), 0.97, 1e-9);
  EXPECT_NEAR(Sat(classes[1], "FP"), 0.2, 1e-9);
  EXPECT_EQ(Sat(classes[1], "COUNT"), -1) << "it tells trips, not times";
  EXPECT_EQ(classes[1].figures[0].shadows, 4u);
  EXPECT_EQ(classes, instances.Classes()) << "deterministic";
}

TEST(TripClasses, AreTenAtMostAndOfFourInstancesAtLeast) {
  const auto sizes = [](uint64_t count) {
    Instances instances;
    for (uint64_t i = 1; i <= count; ++i) instances.Add(100 * i);
    return Sizes(instances.Classes());
  };
  EXPECT_EQ(sizes(7), Counts{}) << "eight are needed for two classes";
  EXPECT_EQ(sizes(8), (Counts{4, 4}));
  EXPECT_EQ(sizes(12), (Counts{4, 4, 4}));
  EXPECT_EQ(sizes(40), Counts(10, 4));
  EXPECT_EQ(sizes(64).size(), kMostTripClasses);
}

TEST(TripClasses, NeverPartEqualCountsAndJoinWhatIsTooSmall) {
  Instances instances;
  for (int i = 0; i < 10; ++i) instances.Add(10);
  for (int i = 0; i < 3; ++i) instances.Add(500);  // too few for a class of their own
  for (int i = 0; i < 5; ++i) instances.Add(1000);
  const auto classes = instances.Classes();
  ASSERT_EQ(Sizes(classes), (Counts{10, 8})) << "the three join the smaller neighbour";
  EXPECT_EQ(classes[1].shortest, 500u);
  EXPECT_EQ(classes[1].longest, 1000u);
}

TEST(TripClasses, OneLongInstanceIsNoClass) {
  Instances instances;
  for (int i = 0; i < 20; ++i) instances.Add(10);
  instances.Add(100'000);
  EXPECT_TRUE(instances.Classes().empty());
}

TEST(TripClasses, NoneWhereTheInstancesAreAlike) {
  const auto classes = [](uint64_t longer) {
    Instances instances;
    for (int i = 0; i < 4; ++i) instances.Add(100).Add(longer);
    return instances.Classes().size();
  };
  EXPECT_EQ(classes(100), 0u);
  EXPECT_EQ(classes(199), 0u);
  EXPECT_EQ(classes(200), 2u);
}

TEST(TripClasses, CountTheThreadThatMakesMostAndLeaveOutWhatWasNotCounted) {
  Instances instances;
  for (int i = 0; i < 4; ++i)
    instances.Add(10).Run("COUNT", 1, 30, 1).Add(100).Run("COUNT", 1, 70, 1);
  auto classes = instances.Classes();
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(classes[0].longest, 30u);
  EXPECT_EQ(classes[1].longest, 100u);
  for (RunSample& run : instances.runs()) {
    if (run.shadow == 2 && run.variant == "COUNT") run.status = RunOutcome::kFault;
  }
  EXPECT_TRUE(instances.Classes().empty()) << "seven are left";
}

TEST(TripsVary, FromTwiceAsLongOn) {
  EXPECT_FALSE(TripsVary(std::vector<uint64_t>{}));
  EXPECT_FALSE(TripsVary(std::vector<uint64_t>{100, 150, 199}));
  EXPECT_TRUE(TripsVary(std::vector<uint64_t>{200, 100}));
  EXPECT_FALSE(TripsVary(std::vector<uint64_t>{0, 1}));
  EXPECT_TRUE(TripsVary(std::vector<uint64_t>{0, 2}));
}

TripClass Class(uint64_t shortest, uint64_t longest, double ls, double fp, double half = 0.01) {
  return {shortest, longest, 4, {Figures("LS", ls, half), Figures("FP", fp, half)}};
}

LoopMeasurement With(std::vector<TripClass> classes) {
  LoopMeasurement loop;
  loop.trip_classes = std::move(classes);
  return loop;
}

TEST(TripRemark, SaysWhereTheVerdictChanges) {
  TripClass shortest = Class(3, 12, 0.99, 0.98);
  shortest.figures.push_back(Figures("CTRL", 0.97));
  const std::vector<TripClass> classes = {shortest, Class(40, 90, 0.98, 0.3),
                                          Class(800, 40000, 0.99, 0.2)};
  EXPECT_EQ(
      TripRemark(With(classes)),
      "the verdict depends on the trip count: overhead bound from 3 to 12 trips, memory bound "
      "from 40 to 40000 trips");
  EXPECT_EQ(
      TripRemark(With({Class(5, 5, 0.2, 0.99), Class(9, 20, 0.99, 0.2)})),
      "the verdict depends on the trip count: arithmetic bound at 5 trips, memory bound from 9 "
      "to 20 trips");
}

TEST(TripRemark, SaysNothingWhereClassesAgreeOrAreNotSure) {
  EXPECT_EQ(TripRemark(With({Class(1, 2, 0.99, 0.3), Class(5, 9, 0.9, 0.2)})), "");
  EXPECT_EQ(TripRemark(With({Class(1, 2, 0.8, 0.6, 0.2), Class(5, 9, 0.2, 0.9)})), "");
  EXPECT_EQ(TripRemark({}), "");
}

}  // namespace
}  // namespace perfd
