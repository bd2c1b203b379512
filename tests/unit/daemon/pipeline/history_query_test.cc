#include "daemon/pipeline/history_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "tests/unit/daemon/pipeline/pipeline_fixture.h"

namespace perfd::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Every look at it takes a while.
class TiredClock final : public Clock {
 public:
  int64_t MonotonicNs() const override {
    if (on_probe) std::exchange(on_probe, {})();
    return now_ns_ += step_ns;
  }
  int64_t UnixNs() const override { return 0; }
  int64_t step_ns = 0;
  mutable std::function<void()> on_probe;  // called once

 private:
  mutable int64_t now_ns_ = 0;
};

class HistoryQueryTest : public StoreFixture {
 protected:
  void SetUp() override { ASSERT_TRUE(Open().ok()); }

  std::string Store(const std::string& command, uint32_t uid = 1000,
                    ProfileState state = ProfileState::kDone) {
    ProfileStatus status = Profile(uid, state);
    status.spec.target.command.reset();
    status.spec.target.slurm_job = 7;
    status.samples = 10;
    status.id = *store_->Create(status);
    Report report;
    report.status = status;
    report.ranks.resize(1);
    report.ranks[0].info.command = command;
    report.loops.resize(1);
    report.loops[0].id = "3fa9c2d100000001";
    report.loops[0].share = 0.5;
    if (IsFinal(state)) {
      EXPECT_TRUE(store_->StoreFinal({status, report, "", 0}).ok());
    }
    return status.id;
  }
  std::vector<std::string> Ids(const std::string& command, size_t limit = 100,
                               std::optional<uint32_t> uid = std::nullopt) {
    const auto history = Registry().Find(uid, command, limit);
    std::vector<std::string> ids;
    if (!history.ok()) return ids;
    for (const HistoryProfile& profile : history->profiles) ids.push_back(profile.id);
    return ids;
  }
  HistoryQuery& Registry() {
    if (registry_ == nullptr) registry_ = std::make_unique<HistoryQuery>(*store_, clock_);
    return *registry_;
  }

  TiredClock clock_;
  std::unique_ptr<HistoryQuery> registry_;
};

TEST_F(HistoryQueryTest, TheProfilesOfOneProgramOldestFirst) {
  const std::string a1 = Store("a"), b1 = Store("b"), a2 = Store("a"), a3 = Store("a");
  Store("a", 1000, ProfileState::kSampling);
  EXPECT_THAT(Ids("a"), ElementsAre(a1, a2, a3));
  EXPECT_THAT(Ids("b"), ElementsAre(b1));
  EXPECT_THAT(Ids("a", 2), ElementsAre(a2, a3));
  EXPECT_THAT(Ids(""), ElementsAre(a1, a2, a3));  // the newest is of a
  EXPECT_EQ(Registry().Find(std::nullopt, "c", 10).status().code(), absl::StatusCode::kNotFound);
  const auto history = Registry().Find(std::nullopt, "a", 10);
  EXPECT_EQ(history->command, "a");
  EXPECT_EQ(history->incomplete, "");
  EXPECT_EQ(history->profiles[0].loops[0].cpu.share, 0.5);
  EXPECT_EQ(history->profiles[0].job, "7");
}

TEST_F(HistoryQueryTest, NobodySeesTheProfilesOfOthers) {
  const std::string own = Store("a", 1000);
  const std::string other = Store("a", 1001);
  EXPECT_THAT(Ids("a", 10, 1000), ElementsAre(own));
  EXPECT_THAT(Ids("", 10, 1001), ElementsAre(other));
  EXPECT_THAT(Ids("a", 10, 1002), IsEmpty());
}

// What there was no time for is said, and comes with the next question.
TEST_F(HistoryQueryTest, ReadingTakesItsTime) {
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(Store("a"));
  clock_.step_ns = 2 * kNsPerSecond;
  auto history = Registry().Find(std::nullopt, "a", 10);
  ASSERT_TRUE(history.ok());
  const size_t first = history->profiles.size();
  EXPECT_GE(first, 1u);
  EXPECT_LT(first, 5u);
  EXPECT_EQ(history->profiles.back().id, ids.back());
  EXPECT_THAT(history->incomplete, HasSubstr("ask again"));
  for (int i = 0; i < 5 && !history->incomplete.empty(); ++i)
    history = Registry().Find(std::nullopt, "a", 10);
  EXPECT_EQ(history->profiles.size(), 5u);
  EXPECT_EQ(history->incomplete, "");
}

TEST_F(HistoryQueryTest, OneQuestionAtATimeReads) {
  const std::string first = Store("a"), second = Store("a");
  absl::StatusOr<ProgramHistory> meanwhile;
  // At the second look at the clock the first question is under way.
  clock_.on_probe = [&] {
    clock_.on_probe = [&] { meanwhile = Registry().Find(std::nullopt, "a", 10); };
  };
  EXPECT_THAT(Ids("a"), ElementsAre(first, second));
  ASSERT_TRUE(meanwhile.ok()) << meanwhile.status();
  EXPECT_THAT(meanwhile->profiles, IsEmpty());
  EXPECT_THAT(meanwhile->incomplete, HasSubstr("ask again"));
}

class ReportUrlTest : public PipelineFixture {};

TEST_F(ReportUrlTest, IsForThoseWhoMaySeeTheProfile) {
  Connect("a");
  const std::string id = Submit();
  EXPECT_EQ(pipeline_->ReportUrl({1001, "other", false}, id).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(pipeline_->ReportUrl({1000, "user", false}, id).status().code(),
            absl::StatusCode::kFailedPrecondition);  // this pipeline serves no pages
}

}  // namespace
}  // namespace perfd::daemon
