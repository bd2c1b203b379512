#include "agent/experiment/plan/run_schedule.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace perfd::agent {
namespace {

ScheduleInput Request() {
  ScheduleInput request;
  request.variants = {3, 4, 5};
  request.bases = {0, 0, 7};
  request.run_ns = 1000;
  request.room_ns = 1'000'000;
  request.rounds = 5;
  return request;
}

TEST(RunScheduleTest, EveryVariantStandsBetweenTwoRunsOfItsBase) {
  const Schedule schedule = MakeSchedule(Request());
  const std::map<int32_t, int32_t> base = {{3, 0}, {4, 0}, {5, 7}};
  std::map<int32_t, int> count;
  for (size_t i = 0; i < schedule.runs.size(); ++i) {
    const auto it = base.find(schedule.runs[i].variant);
    if (it == base.end()) continue;
    ++count[it->first];
    ASSERT_GT(i, size_t{0});
    ASSERT_LT(i + 1, schedule.runs.size());
    EXPECT_EQ(schedule.runs[i - 1].variant, it->second);
    EXPECT_EQ(schedule.runs[i + 1].variant, it->second);
  }
  EXPECT_EQ(schedule.rounds, 5);
  EXPECT_EQ(count[3], 5);
  EXPECT_EQ(count[4], 5);
  EXPECT_EQ(count[5], 5);
  for (int i = 0; i < schedule.warm_ups; ++i)
    EXPECT_EQ(schedule.runs[static_cast<size_t>(i)].variant, 0);
}

TEST(RunScheduleTest, EveryCopyLearnsOnceBeforeTheWarmUps) {
  ScheduleInput request = Request();
  request.restore = true;
  request.learn_ns = 5000;
  const Schedule schedule = MakeSchedule(request);
  std::set<int32_t> learning;
  for (size_t i = 0; i < schedule.runs.size(); ++i) {
    EXPECT_TRUE(schedule.runs[i].restore);
    EXPECT_EQ(schedule.runs[i].learn, i < 5) << i;
    if (schedule.runs[i].learn) learning.insert(schedule.runs[i].variant);
  }
  EXPECT_EQ(learning, (std::set<int32_t>{0, 3, 4, 5, 7}));
  EXPECT_EQ(schedule.warm_ups, 5 + 2);
  EXPECT_EQ(schedule.predicted_ns, static_cast<int64_t>(schedule.runs.size()) * 1000 + 5 * 4000);
  request.restore = false;
  EXPECT_FALSE(MakeSchedule(request).runs[0].learn);
}

TEST(RunScheduleTest, NeighboursShareTheirBase) {
  ScheduleInput request = Request();
  request.variants = {3, 4, 5, 6};
  request.bases = {0, 0, 0, 0};
  // Two warm-ups, of which the second serves the first variant, then variant and base in turn.
  EXPECT_EQ(MakeSchedule(request).runs.size(), size_t{2 + 5 * 4 * 2});
}

TEST(RunScheduleTest, OrderDiffersBetweenRounds) {
  ScheduleInput request = Request();
  request.variants = {3, 4, 5, 6};
  request.bases = {0, 0, 0, 0};
  request.rounds = 12;
  const Schedule schedule = MakeSchedule(request);
  std::set<std::vector<int32_t>> orders;
  std::vector<int32_t> order;
  for (const RunSpec& run : schedule.runs) {
    if (run.variant == 0) continue;
    order.push_back(run.variant);
    if (order.size() == 4) orders.insert(order), order.clear();
  }
  EXPECT_GT(orders.size(), size_t{4});
}

TEST(RunScheduleTest, FitsTheRoomButRunsAtLeastOnce) {
  ScheduleInput request = Request();
  request.room_ns = 20'000;
  request.rounds = 100;
  Schedule schedule = MakeSchedule(request);
  EXPECT_GE(schedule.rounds, 1);
  EXPECT_LE(schedule.predicted_ns, 20'000);
  request.room_ns = 1;
  schedule = MakeSchedule(request);
  EXPECT_EQ(schedule.rounds, 1);
  EXPECT_GT(schedule.predicted_ns, 1);
  request.room_ns = INT64_C(1) << 50;
  request.rounds = 1'000'000;
  EXPECT_LE(MakeSchedule(request).runs.size(), static_cast<size_t>(kMostScheduled));
}

TEST(RunScheduleTest, WithoutVariantsOnlyTheBaseRuns) {
  ScheduleInput request = Request();
  request.variants.clear();
  request.bases.clear();
  const Schedule schedule = MakeSchedule(request);
  EXPECT_EQ(schedule.rounds, 0);
  EXPECT_EQ(schedule.runs.size(), static_cast<size_t>(kWarmUps));
}

TEST(RunScheduleTest, VariantsOfOneBaseStayTogether) {
  ScheduleInput request = Request();
  request.variants = {3, 4, 5, 6};
  request.bases = {0, 7, 0, 7};
  request.rounds = 8;
  const Schedule schedule = MakeSchedule(request);
  // Each round goes from one base to the other once: 2 x 2 variants and bases, and the new base.
  EXPECT_EQ(schedule.runs.size(), static_cast<size_t>(kWarmUps + 8 * (4 * 2 + 1) + 8 - 1));
}

TEST(RunScheduleTest, WarmsUpTheBaseOfTheFirst) {
  ScheduleInput request = Request();
  request.variants = {5};
  request.bases = {7};
  const Schedule schedule = MakeSchedule(request);
  for (const RunSpec& run : schedule.runs) EXPECT_NE(run.variant, 0);
}

TEST(RunScheduleTest, PredictsEveryRun) {
  const Schedule schedule = MakeSchedule(Request());
  EXPECT_EQ(schedule.predicted_ns, static_cast<int64_t>(schedule.runs.size()) * Request().run_ns);
}

TEST(RunScheduleTest, OrderDiffersBetweenShadows) {
  ScheduleInput request = Request();
  request.variants = {3, 4, 5, 6};
  request.bases = {0, 0, 0, 0};
  request.rounds = 1;
  std::set<std::vector<int32_t>> orders;
  for (request.seed = 1; request.seed <= 20; ++request.seed) {
    std::vector<int32_t> order;
    for (const RunSpec& run : MakeSchedule(request).runs) order.push_back(run.variant);
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), size_t{5});
}

TEST(RunScheduleTest, ProtocolIsThatOfTheWish) {
  ScheduleInput request = Request();
  request.evict = Evict::kSecond;
  request.restore = true;
  for (const RunSpec& run : MakeSchedule(request).runs)
    EXPECT_TRUE(run.evict == Evict::kSecond && run.restore);
}

}  // namespace
}  // namespace perfd::agent
