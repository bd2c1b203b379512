#include "agent/shadow/recovery/give_back.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "agent/shadow/restore.h"
#include "core/base/clock.h"
#include "tests/unit/shadow/injected_rank.h"

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kTerm = uint64_t{1} << 14, kSegv = uint64_t{1} << 10;

ThreadRecord Inside(uint32_t tid, uint32_t inside, uint64_t gs_base = 0) {
  ThreadRecord record{};
  record.tid = tid;
  record.run.inside = inside;
  record.run.gs_base = gs_base;
  record.run.signals = kTerm;
  return record;
}

TEST(PlanGiveBackTest, WhoIsInsideByTheBaseOfItsBlock) {
  const RegionAccess region(nullptr, 0x10000, 4);
  const GiveBackPlan plan = PlanGiveBack(
      {Inside(5, kNotInside), Inside(6, kInCopy, 0x7000), Inside(7, kJumped), Inside(8, kInCopy)},
      region, {{0x1000, 0x2000}});
  EXPECT_THAT(plan.records, ElementsAre(1u, 3u));
  ASSERT_EQ(plan.op.entries.size(), 2u);
  EXPECT_EQ(plan.op.entries[0].gs_base, region.BlockAddress(1));
  EXPECT_EQ(plan.op.entries[0].own_gs_base, 0x7000u);
  EXPECT_EQ(plan.op.entries[1].gs_base, region.BlockAddress(3));
  EXPECT_EQ(plan.op.entries[0].own_mask, kTerm);
  // All but what stays open, and what nobody can block, as the payload sets it.
  EXPECT_EQ(plan.op.entries[0].mask & kTerm, kTerm);
  EXPECT_EQ(plan.op.entries[0].mask & kSegv, 0u);
  EXPECT_EQ(plan.op.either & kSegv, kSegv);
  EXPECT_EQ(plan.op.either & kTerm, 0u);
  EXPECT_EQ(plan.op.loose, uint64_t{3} << 31) << "signals 32 and 33";
  ASSERT_EQ(plan.op.ranges.size(), 1u);
  EXPECT_EQ(plan.op.ranges[0].start, 0x1000u);
}

TEST(PlanGiveBackTest, RecordsThatNobodyHasOrThatCannotBe) {
  const RegionAccess region(nullptr, 0x10000, 4);
  const uint64_t end = (uint64_t{1} << 47) - 4096;  // TASK_SIZE_MAX
  const GiveBackPlan plan = PlanGiveBack(
      {Inside(0, kInCopy), Inside(6, kInCopy, end), Inside(7, kInCopy, end - 1)}, region, {});
  EXPECT_THAT(plan.records, ElementsAre(1u, 2u));
  EXPECT_EQ(plan.op.entries.at(0).own_gs_base, 0u) << "the kernel would refuse it";
  EXPECT_EQ(plan.op.entries.at(1).own_gs_base, end - 1);
}

class RestoreJumpedTest : public InjectedRankTest {
 protected:
  void Fill(uint32_t version, uint32_t blocks) {
    std::memcpy(region_ + offsetof(RegionHeader, version), &version, 4);
    std::memcpy(region_ + offsetof(RegionHeader, block_count), &blocks, 4);
    const ThreadRecord record = Inside(77, kInCopy);
    std::memcpy(region_ + kRecordsOffset, &record, sizeof(record));
    StartRank();
    NameCacheAndRegion();
    StartTracer({});
  }
  absl::Status Restore() {
    RestoreResult result;
    return RestoreRank(injection_, {tracer_.get(), 20 * kNsPerMs, 5 * kNsPerSecond, false},
                       &result);
  }
};

// Of HoldOp: Call 0, Write 1, ExpectBytes 2, MoveThreads 4, RequireOutside 5, ScanStacks 6, GiveBack 8. Once threads have been
// moved out of the copies, whoever else may be in the way, and before the block that the GS base names is unmapped.
TEST_F(RestoreJumpedTest, GetBackWhatTheyTookAlong) {
  Fill(kShadowLayoutVersion, 1);
  EXPECT_TRUE(Restore().ok());
  EXPECT_THAT(Holds(), ElementsAre("21214"
                                   "8"
                                   "5"
                                   "6"
                                   "00"));
}

TEST_F(RestoreJumpedTest, RecordsOfAnotherLayoutAreNotRead) {
  constexpr uint32_t kOtherRecords = 5;
  Fill(kOtherRecords, 1);
  EXPECT_TRUE(Restore().ok());
  EXPECT_THAT(Holds(), ElementsAre("21214"
                                   "5"
                                   "6"
                                   "00"));
}

// A region may say what it likes; everything else is taken out all the same.
TEST_F(RestoreJumpedTest, RecordsThatAreNotThereAreNotRead) {
  Injection injection;
  injection.pid = getpid();
  injection.start_ticks = *ProcFs().StartTicks(getpid());
  injection.region.start = Address(region_);
  const auto memory = Memory::Open(injection.pid, injection.start_ticks);
  ASSERT_TRUE(memory.ok());
  const auto read = [&](uint32_t blocks, uint64_t bytes) {
    std::memcpy(region_ + offsetof(RegionHeader, block_count), &blocks, 4);
    injection.region.end = injection.region.start + bytes;
    return ReadGiveBack(injection, *memory).status().code();
  };
  constexpr uint64_t kTwo = kRecordsOffset + 2 * sizeof(ThreadRecord);
  EXPECT_EQ(read(2, kTwo), absl::StatusCode::kOk);
  EXPECT_EQ(read(3, kTwo), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(read(2, kTwo - 1), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(read(kMaxTeam + 1, uint64_t{1} << 40), absl::StatusCode::kFailedPrecondition);
  Fill(kShadowLayoutVersion, ~0U);
  EXPECT_TRUE(Restore().ok());
  EXPECT_THAT(Holds(), ElementsAre("21214"
                                   "5"
                                   "6"
                                   "00"));
}

}  // namespace
}  // namespace perfd::agent
