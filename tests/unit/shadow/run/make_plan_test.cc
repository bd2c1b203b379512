// From a request to the plan of a shadow: what stands where, what is shared, what is too large.
#include "agent/shadow/run/make_plan.h"

#include "agent/shadow/shadow_reading.h"
#include "core/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kEmptyCopy = 0x9000;

std::vector<uint64_t> Copies(const ShadowPlan& plan) {
  std::vector<uint64_t> copies;
  for (uint32_t i = 0; i < plan.run_count; ++i) copies.push_back(plan.runs[i].copy);
  return copies;
}

// A loop with REF, which stands at two further places, and TRACE.
class MakePlanTest : public ::testing::Test {
 protected:
  MakePlanTest() {
    site_.index = 3;
    site_.empty_copy = kEmptyCopy;
    InstalledLoop& loop = site_.built.installed;
    loop.names = {SingleVariant(Change::kRef), SingleVariant(Change::kTrace)};
    loop.copies.resize(2);
    loop.copies[0].entry = 0x1000;
    loop.copies[0].places.shifts = {0x100, 0x200};
    loop.copies[1].entry = 0x2000;
    loop.batches = absl::NotFoundError("no batch");
    request_.team = 2;
    request_.shadow_ns = 10 * kNsPerMs;
  }
  absl::StatusOr<ShadowPlan> Plan() { return MakePlan(site_, request_, limits_, ticks_); }
  absl::StatusCode Refusal() { return Plan().status().code(); }

  PatchSite site_;
  ShadowRequest request_;
  PlanLimits limits_{4, 100 * kNsPerMs};
  TickClock ticks_;
};

TEST_F(MakePlanTest, RunsStandBetweenRunsOfAnEmptyCopy) {
  request_.runs = {{.variant = 0}, {.variant = 1}};
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Copies(*plan), ElementsAre(kEmptyCopy, 0x1000, 0x2000, kEmptyCopy, kEmptyCopy));
  EXPECT_EQ(plan->site, 3u);
  EXPECT_EQ(plan->team, 2u);
  EXPECT_EQ(plan->runs[1].flags & kRunTrace, 0u);
  EXPECT_NE(plan->runs[2].flags & kRunTrace, 0u);
}

TEST_F(MakePlanTest, PlacesAreCountedRound) {
  request_.runs = {{.place = 0}, {.place = 1}, {.place = 2}, {.place = 3}, {.place = -1}};
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Copies(*plan), ElementsAre(kEmptyCopy, 0x1000, 0x1100, 0x1200, 0x1000, 0x1000,
                                         kEmptyCopy, kEmptyCopy));
}

TEST_F(MakePlanTest, RunsOfOneCopyShareItsPointersWhereverItStands) {
  site_.built.installed.copies[0].self_pointers = {{1, 16}, {2, 32}};
  site_.built.installed.copies[1].self_pointers = {{5, 64}};
  request_.runs = {{.variant = 0}, {.variant = 1}, {.variant = 0, .place = 2}};
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->runs[1].self_first, 0);
  EXPECT_EQ(plan->runs[1].self_count, 2);
  EXPECT_EQ(plan->runs[2].self_first, 2);
  EXPECT_EQ(plan->runs[2].self_count, 1);
  EXPECT_EQ(plan->runs[3].self_first, 0);
  EXPECT_EQ(plan->runs[3].self_count, 2);
  EXPECT_EQ(plan->tables.selves[2].word, 5u);
}

TEST_F(MakePlanTest, TooManyPointersAreRefused) {
  site_.built.installed.copies[0].self_pointers.resize(kMaxSelfWords);
  request_.runs = {{.variant = 0}};
  EXPECT_TRUE(Plan().ok());
  site_.built.installed.copies[0].self_pointers.resize(kMaxSelfWords + 1);
  EXPECT_EQ(Refusal(), absl::StatusCode::kResourceExhausted);
}

TEST_F(MakePlanTest, ATeamNeedsABlockForEach) {
  request_.team = 4;
  EXPECT_TRUE(Plan().ok());
  request_.team = 5;
  EXPECT_EQ(Refusal(), absl::StatusCode::kFailedPrecondition);
  request_.team = 0;
  EXPECT_EQ(Refusal(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(MakePlanTest, MostRunsAreTheMostThatFit) {
  limits_.blocks = kMaxTeam;
  for (const int32_t team : {1, 100, 256}) {
    request_.team = team;
    request_.runs.resize(static_cast<size_t>(MostRuns(team)));
    EXPECT_TRUE(Plan().ok()) << team;
    request_.runs.emplace_back();
    EXPECT_EQ(Refusal(), absl::StatusCode::kInvalidArgument) << team;
  }
}

TEST_F(MakePlanTest, AVariantThatTheLoopHasNotIsRefused) {
  request_.runs = {{.variant = 2}};
  EXPECT_EQ(Refusal(), absl::StatusCode::kInvalidArgument);
  request_.runs = {{.variant = -1}};
  EXPECT_EQ(Refusal(), absl::StatusCode::kInvalidArgument);
}

TEST_F(MakePlanTest, BatchesRunTheirOwnCopiesOrSayWhyNot) {
  request_.runs = {{.variant = 0, .instances = 7}};
  EXPECT_EQ(Refusal(), absl::StatusCode::kNotFound);
  CodeCopy batch;
  batch.entry = 0x5000;
  site_.built.installed.batches = absl::OkStatus();
  site_.built.installed.batched = {batch, absl::AbortedError("this one is not")};
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->runs[1].copy, 0x5000u);
  EXPECT_EQ(plan->runs[1].instances, 7u);
  request_.runs[0].variant = 1;
  EXPECT_EQ(Refusal(), absl::StatusCode::kAborted);
}

TEST_F(MakePlanTest, RangesAreSharedOutUnlessOneThreadWritesThem) {
  request_.restores = {{0x100, 8}, {0x200, 8}, {0x300, 8}};
  request_.writers = {1, -1};
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->restore_count, 3u);
  EXPECT_EQ(plan->restores[0].owner, 1u);
  EXPECT_EQ(plan->restores[1].owner, kSharedOut);
  EXPECT_EQ(plan->restores[2].owner, kSharedOut);
}

TEST_F(MakePlanTest, NoShadowIsLongerThanTheLimit) {
  request_.shadow_ns = 1000 * kNsPerMs;
  auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->shadow_ns, 100u * kNsPerMs);
  EXPECT_LT(ticks_.ToNs(plan->soft_ticks), 100 * kNsPerMs);  // the last run has time to end
  request_.shadow_ns = 0;
  plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->shadow_ns, static_cast<uint64_t>(kNsPerMs));
}

TEST_F(MakePlanTest, NoMoreIsWrittenThanThereIs) {
  MemoryFacts memory;
  memory.anonymous = 1000;
  request_.written.most_bytes = 5000;
  EXPECT_EQ(BytesWritten(request_, memory), 1000u);
  request_.restores = {{0x100, 24}};
  EXPECT_EQ(BytesWritten(request_, memory), 1024u);
}

}  // namespace
}  // namespace perfd::agent
