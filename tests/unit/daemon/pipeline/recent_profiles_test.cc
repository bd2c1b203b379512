// How long profiles that have ended stay on the metrics page: for an hour, and while fewer than 20 newer ones came.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "absl/time/clock.h"
#include "tests/unit/daemon/pipeline/pipeline_fixture.h"

namespace perfd::daemon {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;

constexpr int64_t kHour = 3600 * kNsPerSecond;
constexpr size_t kShown = 20;

class RecentProfilesTest : public PipelineFixture {
 protected:
  void SetUp() override {
    PipelineFixture::SetUp();
    agent_ = Connect("a");
  }

  // One that runs and has samples.
  std::string Running() {
    const std::string id = Submit();
    EXPECT_TRUE(Accept(agent_, Window(id, "a", ++sequence_)).ok());
    // It is stored; merged it is a little later.
    Await([&] { return pipeline_->Get({1000, "user", false}, id)->samples > 0; });
    return id;
  }

  static void Await(const std::function<bool()>& reached) {
    const absl::Time end = absl::Now() + absl::Seconds(10);
    while (!reached() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
    ASSERT_TRUE(reached());
  }

  void Finish(const std::string& id) {
    // Its aggregate goes last of all, and may have gone when End returns.
    const size_t left = pipeline_->aggregates() - 1;
    End(agent_, id, sequence_);
    Await([&] { return pipeline_->aggregates() == left; });
  }

  std::string Finished() {
    const std::string id = Running();
    Finish(id);
    return id;
  }

  // After a turn of the clockwork.
  std::vector<std::string> Shown() {
    pipeline_->Tick();
    std::vector<std::string> ids;
    for (const ProfileFigure& figure : pipeline_->Figures().hot) ids.push_back(figure.id);
    return ids;
  }

  uint64_t agent_ = 0;
  uint64_t sequence_ = 0;
};

TEST_F(RecentProfilesTest, AnHourAfterItsEndItGoes) {
  const std::string id = Running();
  clock_.Pass(2 * kHour);  // counts from the end, not from the beginning
  Finish(id);
  EXPECT_THAT(Shown(), ElementsAre(id));
  clock_.Pass(kHour - 1);
  EXPECT_THAT(Shown(), ElementsAre(id));
  clock_.Pass(1);
  EXPECT_THAT(Shown(), IsEmpty());
}

TEST_F(RecentProfilesTest, EachHasItsOwnHour) {
  const std::string first = Finished();
  clock_.Pass(kHour / 2);
  const std::string second = Finished();
  EXPECT_THAT(Shown(), ElementsAre(second, first));
  clock_.Pass(kHour / 2);
  EXPECT_THAT(Shown(), ElementsAre(second));
  clock_.Pass(kHour / 2);
  EXPECT_THAT(Shown(), IsEmpty());
}

TEST_F(RecentProfilesTest, AStepOfTheClockNeitherEndsNorLengthensTheHour) {
  const std::string id = Finished();
  clock_.unix_ns += 100 * kHour;
  EXPECT_THAT(Shown(), ElementsAre(id));
  clock_.unix_ns -= 300 * kHour;
  EXPECT_THAT(Shown(), ElementsAre(id));
  clock_.mono_ns += kHour;
  EXPECT_THAT(Shown(), IsEmpty());
}

TEST_F(RecentProfilesTest, TheTwentyFirstPushesTheOldestOut) {
  std::deque<std::string> newest;
  for (size_t i = 0; i < kShown; ++i) newest.push_front(Finished());
  EXPECT_THAT(Shown(), ElementsAreArray(newest));
  newest.push_front(Finished());
  newest.pop_back();
  EXPECT_THAT(Shown(), ElementsAreArray(newest));
  clock_.Pass(kHour);
  EXPECT_THAT(Shown(), IsEmpty());
}

// Of all together there are never more than 20: what runs is shown first, and takes the place of the oldest.
TEST_F(RecentProfilesTest, WhatRunsTakesThePlaceOfTheOldest) {
  std::deque<std::string> ended;
  for (size_t i = 0; i < kShown; ++i) ended.push_front(Finished());
  const std::string running = Running();
  std::vector<std::string> wanted = {running};
  wanted.insert(wanted.end(), ended.begin(), ended.end() - 1);
  EXPECT_THAT(Shown(), ElementsAreArray(wanted));
  Finish(running);
  EXPECT_THAT(Shown(), ElementsAreArray(wanted));  // once
}

}  // namespace
}  // namespace perfd::daemon
