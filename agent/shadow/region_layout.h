// agent/shadow/region_layout.h - where the parts of the shared region begin.
//
// Shape    offsets from the RegionHeader, as functions of the number of blocks (one per thread of the rank that may meet).
//          [control: header, sites, plan, live ring, records, map][child: ChildControl, results, blocks]; both parts are whole pages.
// Units    bytes.
// Source   our own layout; changing it means raising kShadowLayoutVersion.
#ifndef AGENT_SHADOW_REGION_LAYOUT_H_
#define AGENT_SHADOW_REGION_LAYOUT_H_

#include <cstdint>

#include "agent/shadow/protocol.h"
#include "agent/shadow/shadow_plan.h"

namespace perfd::agent {

inline constexpr uint64_t kRegionPage = 4096;

constexpr uint64_t RoundToPage(uint64_t bytes) {
  return (bytes + kRegionPage - 1) & ~(kRegionPage - 1);
}

inline constexpr uint64_t kSitesOffset = 1024;
inline constexpr uint64_t kLiveOffset = kSitesOffset + kMaxSites * sizeof(Site);
inline constexpr uint64_t kTurnsOffset = kLiveOffset + kLiveSlots * sizeof(LiveRecord);
inline constexpr uint64_t kPlanOffset = RoundToPage(kLiveOffset + kLiveSlots * sizeof(LiveRecord));
inline constexpr uint64_t kRecordsOffset = RoundToPage(kPlanOffset + sizeof(ShadowPlan));
static_assert(sizeof(RegionHeader) <= kSitesOffset);
static_assert(kTurnsOffset % alignof(LiveTurns) == 0 &&
              kTurnsOffset + kMaxSites * sizeof(LiveTurns) <= kPlanOffset);
// Whoever restores a rank finds sites and records of earlier layouts there (restore.cc); another place needs another kSameRecords.
static_assert(kSitesOffset == 1024 && sizeof(Site) == 256 && kRecordsOffset == 102400);

constexpr uint64_t MapOffset(uint32_t blocks) {
  return RoundToPage(kRecordsOffset + blocks * sizeof(ThreadRecord));
}
// The child's part begins here.
constexpr uint64_t ChildOffset(uint32_t blocks) {
  return RoundToPage(MapOffset(blocks) + kMaxMapEntries * sizeof(InstructionPair));
}
constexpr uint64_t ResultsOffset(uint32_t blocks) {
  return RoundToPage(ChildOffset(blocks) + sizeof(ChildControl));
}
constexpr uint64_t BlocksOffset(uint32_t blocks) {
  return RoundToPage(ResultsOffset(blocks) + kResultSlots * sizeof(RunResult));
}
constexpr uint64_t BlockOffset(uint32_t blocks, uint32_t index) {
  return BlocksOffset(blocks) + uint64_t{index} * kThreadBlockBytes;
}
constexpr uint64_t RegionBytes(uint32_t blocks) {
  return BlockOffset(blocks, blocks);
}

constexpr uint32_t SitePhase(uint64_t state) {
  return static_cast<uint32_t>(state & 0xff);
}
constexpr uint32_t SiteJoined(uint64_t state) {
  return static_cast<uint32_t>(state >> 8) & 0xffff;
}
constexpr uint32_t SiteRound(uint64_t state) {
  return static_cast<uint32_t>(state >> 32);
}
constexpr uint64_t SiteState(uint32_t round, uint32_t joined, uint32_t phase) {
  return uint64_t{round} << 32 | uint64_t{joined} << 8 | phase;
}

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_REGION_LAYOUT_H_
