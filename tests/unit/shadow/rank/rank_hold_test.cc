// Stops of a rank and what is written down of them; a region that may be taken out beneath the agent.
#include "agent/shadow/rank/rank_hold.h"

#include <gmock/gmock.h>

#include "agent/shadow/rank/live_region.h"
#include "agent/shadow/region_layout.h"
#include "tests/unit/shadow/injected_rank.h"

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;

class RankHoldTest : public InjectedRankTest {
 protected:
  RankHold& Hold() {
    rank_.pid = pid_;
    rank_.start_ticks = injection_.start_ticks;
    options_.tracer = tracer_.get();
    return hold_.emplace(rank_, options_, &cost_);
  }

  RankInfo rank_;
  InjectorOptions options_;
  InjectionCost cost_;
  std::optional<RankHold> hold_;
};

TEST_F(RankHoldTest, StopsAreCountedWhateverCameOfThem) {
  StartRank();
  StartTracer({"ok", "unsafe"});
  RankHold& hold = Hold();
  EXPECT_TRUE(hold.Stop({}).ok());
  EXPECT_EQ(hold.Stop({}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(cost_.stops, 2u);
  EXPECT_EQ(hold.stop_ns(), 2000);
  EXPECT_FALSE(hold.tracer_died());
}

TEST_F(RankHoldTest, ACallThatIsLostIsRemembered) {
  StartRank();
  StartTracer({"lost"});
  RankHold& hold = Hold();
  EXPECT_FALSE(hold.Stop({}).ok());
  EXPECT_TRUE(hold.tracer_died());
}

TEST_F(RankHoldTest, RestoringIsCountedToo) {
  StartRank();
  StartTracer({});
  RestoreResult result;
  EXPECT_TRUE(Hold().StopToRestore(injection_, &result).ok());
  EXPECT_EQ(result.sites, 2);
  EXPECT_EQ(cost_.stops, 1u);
  EXPECT_EQ(TextAt(0x10), kOriginal);
}

TEST_F(RankHoldTest, NothingIsBegunOnceItIsCancelled) {
  StartRank();
  bool cancelled = true;
  options_.admitted = *ReadAdmission(ProcFs(), pid_);
  options_.cancelled = [&] { return cancelled; };
  RankHold& hold = Hold();
  EXPECT_EQ(hold.MayAlter().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(hold.StillAdmitted().ok());
  cancelled = false;
  EXPECT_TRUE(hold.MayAlter().ok());
}

TEST_F(RankHoldTest, TheAuditLogNamesTheLoopAndItsBytes) {
  std::vector<AuditEntry> log;
  options_.audit = [&](AuditEntry entry) { log.push_back(std::move(entry)); };
  PatchSite site;
  site.loop_id = "inner";
  site.built.patch.address = 0x400010;
  site.built.patch.original = {0xf2, 0x0f, 0x58, 0x07, 0x90};
  site.built.jump = {0xe9, 1, 2, 3, 4};
  RankHold& hold = Hold();
  hold.Audit("install", &site, 42, absl::OkStatus());
  hold.Audit("map", nullptr, 0, absl::UnavailableError("not now"));
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log[0].loop_id, "inner");
  EXPECT_EQ(log[0].original_bytes, "f20f580790");
  EXPECT_EQ(log[0].written_bytes, "e901020304");
  EXPECT_EQ(log[0].pause_ns, 42);
  EXPECT_EQ(log[0].outcome, "ok");
  EXPECT_EQ(log[1].outcome, "not now");
  EXPECT_TRUE(log[1].loop_id.empty());
}

TEST_F(RankHoldTest, NothingIsWrittenWhereTheRegionWas) {
  StartRank();
  const auto memory = Memory::Open(pid_, injection_.start_ticks);
  ASSERT_TRUE(memory.ok());
  LiveRegion region(&*memory, Address(region_), 1);
  EXPECT_TRUE(region.Beat().ok());
  EXPECT_TRUE(region.SetMode(2, kModeArmed).ok());
  const uint64_t mode = region.SiteAddress(2) + offsetof(Site, mode);
  EXPECT_EQ(*region.Read<uint32_t>(mode), uint32_t{kModeArmed});
  ASSERT_TRUE(region.Write(region.address(), uint64_t{0}).ok());
  EXPECT_EQ(region.Beat().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(region.SetMode(2, kModeIdle).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(*region.Read<uint32_t>(mode), uint32_t{kModeArmed});
}

TEST_F(RankHoldTest, ARegionEndsWithItsRank) {
  StartRank();
  const auto memory = Memory::Open(pid_, injection_.start_ticks);
  ASSERT_TRUE(memory.ok());
  const LiveRegion region(&*memory, Address(region_), 1);
  Kill();
  EXPECT_EQ(region.IsThere().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace perfd::agent
