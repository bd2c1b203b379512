#include "daemon/pipeline/results.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/daemon/pipeline/pipeline_fixture.h"

namespace perfd::daemon {
namespace {

class ResultsTest : public PipelineFixture {
 protected:
  uint64_t Samples(const std::string& id) {
    ProfileStatus status = Profile(1);
    status.id = id;
    EXPECT_TRUE(results_->Load(status).ok());
    return status.samples;
  }
  void SetUp() override {
    ASSERT_TRUE(Open().ok());
    results_ = std::make_unique<Results>(*store_, *limits_);
  }
  int64_t Store(const std::string& id, uint64_t sequence) {
    const IncomingWindow incoming = Window(id, "a", sequence);
    return Append({id, {"stream-a"}, sequence, "a", incoming.body})->row_id;
  }
  std::unique_ptr<Results> results_;
};

TEST_F(ResultsTest, AWindowThatWasFoldedBeforeItsTurnCountsOnce) {
  ProfileStatus status = Profile(1);
  status.id = *store_->Create(status);
  status.state = ProfileState::kPartial;
  const int64_t row = Store(status.id, 1);
  // Somebody asks, the report is built from the store, and only then the window's own turn comes.
  ASSERT_TRUE(results_->Finalise(status).ok());
  results_->Forget(status.id);
  ASSERT_TRUE(results_->Add(status.id, Window(status.id, "a", 1).window, row).ok());
  EXPECT_EQ(Samples(status.id), 10u);
  const int64_t next = Store(status.id, 2);
  ASSERT_TRUE(results_->Add(status.id, Window(status.id, "a", 2).window, next).ok());
  EXPECT_EQ(Samples(status.id), 20u);
}

TEST_F(ResultsTest, OneUsersProfilesStopGrowingTheOthersGoOn) {
  const auto add = [&](const std::string& id, uint64_t sequence, uint64_t first, int places) {
    perfd::Window window = Window(id, "a", sequence).window;
    window.threads = {{0, 1, 1}};
    for (int i = 0; i < places; ++i) {
      CodeLocation location;
      location.category = Category::kLoop;
      location.function = absl::StrCat("f", first + static_cast<uint64_t>(i));
      window.locations.push_back(location);
      window.rows.push_back({0, static_cast<uint32_t>(i), 1, 1});
    }
    ASSERT_TRUE(results_->Add(id, window, static_cast<int64_t>(sequence)).ok());
  };
  const std::string alices = *store_->Create(Profile(1)), bobs = *store_->Create(Profile(2)),
                    roots = *store_->Create(Profile(0));
  LimitValues values = StandardLimits();
  values[static_cast<size_t>(Limit::kMemoryPerUser)] = 1;
  limits_->Set(values);
  results_->Begin(alices, 1);  // Bob's and root's are found in the store
  add(alices, 1, 0, 8000);
  add(bobs, 2, 0, 10);
  add(roots, 3, 0, 8000);
  const auto held = results_->Bound();
  EXPECT_GT(held.at(1), 1 << 20);
  EXPECT_GT(held.at(0), 1 << 20);
  EXPECT_LT(held.at(2), 1 << 20);
  for (int i = 0; i < 2; ++i) {
    const auto at = static_cast<uint64_t>(i);
    add(alices, 10 + at, 20000 + 2000 * at, 2000);
    add(bobs, 20 + at, 20000 + 100 * at, 100);
    add(roots, 30 + at, 20000 + 2000 * at, 2000);
    const auto after = results_->Bound();
    EXPECT_LT(after.at(1), held.at(1) + 50'000);
    EXPECT_GT(after.at(2), held.at(2) + 10'000);
    EXPECT_GT(after.at(0), held.at(0) + 300'000);
  }
}

// What comes in again at a restart is bounded as it comes.
TEST_F(ResultsTest, ARebuildDoesNotTakeMoreThanTheLimit) {
  LimitValues values = StandardLimits();
  values[static_cast<size_t>(Limit::kMemoryPerUser)] = 1;
  limits_->Set(values);
  const std::string id = *store_->Create(Profile(1));
  for (uint64_t sequence = 1; sequence <= 300; ++sequence) {
    IncomingWindow incoming = Window(id, "a", sequence);
    incoming.window.threads = {{0, 1, 1}};
    for (uint32_t i = 0; i < 40; ++i) {
      CodeLocation location;
      location.category = Category::kLoop;
      location.function = absl::StrCat("f", sequence, "-", i);
      incoming.window.locations.push_back(location);
      incoming.window.rows.push_back({0, i, 1, 1});
    }
    incoming.body = wire::ToProto(incoming.window).SerializeAsString();
    ASSERT_TRUE(Append({id, {"stream-a"}, sequence, "a", incoming.body}).ok());
  }
  ProfileStatus status = Profile(1);
  status.id = id;
  ASSERT_TRUE(results_->Load(status).ok());
  const int64_t rebuilt = results_->Bound().at(1);
  EXPECT_GT(rebuilt, 1 << 20);
  EXPECT_EQ(Samples(id), 300u * 10) << "which counts on";
  limits_->Set(StandardLimits());
  Results whole(*store_, *limits_);
  ASSERT_TRUE(whole.Load(status).ok());
  EXPECT_LT(static_cast<double>(rebuilt), 0.9 * static_cast<double>(whole.Bound().at(1)));
}

TEST_F(ResultsTest, TheSweepForgetsWhatNobodyWants) {
  const std::string kept = *store_->Create(Profile(1));
  const std::string gone = *store_->Create(Profile(1));
  ASSERT_TRUE(results_->Top(kept, 1).ok());
  ASSERT_TRUE(results_->Top(gone, 1).ok());
  EXPECT_EQ(results_->size(), 2u);
  results_->RetainOnly([&](const std::string& id) { return id == kept; });
  EXPECT_EQ(results_->size(), 1u);
}

}  // namespace
}  // namespace perfd::daemon
