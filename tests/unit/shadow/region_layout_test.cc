#include "agent/shadow/region_layout.h"

#include "agent/shadow/payload_blob.h"
#include "gtest/gtest.h"

namespace perfd::agent {
namespace {

TEST(RegionLayoutTest, PartsDoNotOverlap) {
  for (uint32_t blocks : {1u, 2u, 7u, 64u, kMaxTeam}) {
    EXPECT_LE(kSitesOffset + kMaxSites * sizeof(Site), kLiveOffset);
    EXPECT_LE(kLiveOffset + kLiveSlots * sizeof(LiveRecord), kPlanOffset);
    EXPECT_LE(kPlanOffset + sizeof(ShadowPlan), kRecordsOffset);
    EXPECT_LE(kRecordsOffset + blocks * sizeof(ThreadRecord), MapOffset(blocks));
    EXPECT_LE(MapOffset(blocks) + kMaxMapEntries * sizeof(InstructionPair), ChildOffset(blocks));
    EXPECT_LE(ChildOffset(blocks) + sizeof(ChildControl), ResultsOffset(blocks));
    EXPECT_LE(ResultsOffset(blocks) + kResultSlots * sizeof(RunResult), BlocksOffset(blocks));
    EXPECT_EQ(BlocksOffset(blocks) + uint64_t{blocks} * kThreadBlockBytes, RegionBytes(blocks));
  }
}

// What a shadow may write begins on a page of its own, or protecting the rest would not be possible.
TEST(RegionLayoutTest, ThePartOfTheShadowBeginsAtAPage) {
  for (uint32_t blocks = 1; blocks <= kMaxTeam; ++blocks) {
    EXPECT_EQ(ChildOffset(blocks) % kRegionPage, 0u);
    EXPECT_EQ(BlockOffset(blocks, blocks - 1) % kRegionPage, 0u);
  }
  EXPECT_EQ(kSitesOffset % 64, 0u);
}

TEST(RegionLayoutTest, StateIsOneWord) {
  uint64_t state = SiteState(0xfffffffe, 0xffff, kPhaseShadow);
  EXPECT_EQ(SiteRound(state), 0xfffffffeu);
  EXPECT_EQ(SiteJoined(state), 0xffffu);
  EXPECT_EQ(SitePhase(state), uint32_t{kPhaseShadow});
}

TEST(PayloadBlobTest, DoorsAreWhereTrampolinesCall) {
  std::span<const uint8_t> blob = PayloadBlob();
  ASSERT_GT(blob.size(), 1024u);
  ASSERT_LE(blob.size(), 32768u);
  // mov %rax, %gs:.. at the exit, pushfq at the entry.
  EXPECT_EQ(blob[kPayloadExitStub], 0x65);
  EXPECT_EQ(blob[kPayloadExitStub + 1], 0x48);
  EXPECT_EQ(blob[kPayloadExitStub + 2], 0x89);
  EXPECT_EQ(blob[kPayloadSlowEntry], 0x9c);
}

}  // namespace
}  // namespace perfd::agent
