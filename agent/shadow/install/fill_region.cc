#include "agent/shadow/install/fill_region.h"

#include <sys/auxv.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "agent/shadow/cpu_state.h"
#include "agent/shadow/forking/process_files.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// A payload without an agent for so long passes through.
constexpr int64_t kStaleNs = kNsPerSecond;

std::vector<InstructionPair> PairsOf(const BuiltLoop& built) {
  std::vector<InstructionPair> pairs;
  for (const AddressPair& pair : built.pairs) pairs.push_back({pair.original, pair.copy});
  return pairs;
}

Site SiteFor(const PatchSite& patch_site, uint64_t region) {
  const BuiltLoop& built = patch_site.built;
  Site site{};
  site.index = patch_site.number();
  site.region = region;
  site.header_address = built.patch.address;
  site.trampoline = built.trampoline;
  site.live_copy = built.live.entry;
  site.timed_copy = built.timed ? built.timed->entry : 0;
  site.stolen_bytes = kJumpBytes;
  std::copy(built.patch.original.begin(), built.patch.original.end(), site.original);
  std::copy(built.jump.begin(), built.jump.end(), site.written);
  return site;
}

// The entries of the map that are used then.
absl::StatusOr<uint32_t> FillSites(const InjectedRank& rank, size_t first_site, uint32_t map_used) {
  const LiveRegion& region = *rank.region;
  uint32_t used = map_used;
  for (size_t k = first_site; k < rank.code.sites.size(); ++k) {
    if (!rank.code.sites[k].accepted()) continue;
    Site site = SiteFor(rank.code.sites[k], rank.code.injection.region.start);
    std::vector<InstructionPair> pairs = PairsOf(rank.code.sites[k].built);
    // Those of the batch come last, and give way first.
    if (used + pairs.size() > kMaxMapEntries && rank.code.sites[k].built.timed_batch)
      pairs.resize(pairs.size() - rank.code.sites[k].built.timed_batch->copy.address_map.size());
    if (used + pairs.size() <= kMaxMapEntries) {
      site.map_first = used;
      site.map_count = static_cast<uint32_t>(pairs.size());
      RETURN_IF_ERROR(
          region.WriteMany(region.MapAddress() + used * sizeof(InstructionPair), pairs));
      used += site.map_count;
    }
    RETURN_IF_ERROR(region.Write(region.SiteAddress(site.index), site));
  }
  return used;
}

}  // namespace

absl::Status FillRegion(InjectedRank& rank) {
  ASSIGN_OR_RETURN(NamespacePid pid, ReadNamespacePid(rank.info.pid));
  RegionHeader header{};
  header.magic = kShadowMagic;
  header.version = kShadowLayoutVersion;
  header.header_bytes = sizeof(RegionHeader);
  header.region_bytes = rank.code.injection.region.end - rank.code.injection.region.start;
  header.region_address = rank.code.injection.region.start;
  for (size_t i = 0; i < rank.code.caches.size(); ++i) {
    header.cache_address[i] = rank.code.caches[i].address;
    header.cache_bytes[i] = rank.code.caches[i].bound;
  }
  header.pid = static_cast<uint32_t>(pid.inner);
  constexpr uint64_t kFsgsbase = 2;  // arch/x86/include/uapi/asm/hwcap2.h
  if (getauxval(AT_HWCAP2) & kFsgsbase) header.flags = kRegionHasFsgsbase;
  header.flags |= kRegionHasRights;
  ASSIGN_OR_RETURN(header.rights, rank.region->Read<OwnRights>(rank.region->address() +
                                                               offsetof(RegionHeader, rights)));
  header.start_ticks = rank.info.start_ticks;
  header.site_count = static_cast<uint32_t>(rank.code.injection.sites.size());
  header.block_count = rank.region->blocks();
  ASSIGN_OR_RETURN(header.xsave_mask, XsaveMaskOfThisCpu());
  header.heartbeat_ticks = TickClock::Ticks();
  header.stale_ticks = rank.ticks.ToTicks(kStaleNs);
  ASSIGN_OR_RETURN(header.map_used, FillSites(rank, 0, 0));
  rank.region->OpenDoorbell();
  return rank.region->Write(rank.region->address(), header);
}

absl::Status AddSites(InjectedRank& rank, size_t first_site) {
  const uint64_t at = rank.region->address();
  ASSIGN_OR_RETURN(const uint64_t used,
                   rank.region->Read<uint64_t>(at + offsetof(RegionHeader, map_used)));
  const auto capped = static_cast<uint32_t>(std::min<uint64_t>(used, kMaxMapEntries));
  ASSIGN_OR_RETURN(const uint32_t now_used, FillSites(rank, first_site, capped));
  RETURN_IF_ERROR(
      rank.region->Write(at + offsetof(RegionHeader, map_used), static_cast<uint64_t>(now_used)));
  std::vector<uint64_t> addresses, bytes;
  for (const PcRange& cache : rank.code.injection.caches) {
    addresses.push_back(cache.start);
    bytes.push_back(cache.end - cache.start);
  }
  RETURN_IF_ERROR(rank.region->WriteMany(at + offsetof(RegionHeader, cache_address), addresses));
  RETURN_IF_ERROR(rank.region->WriteMany(at + offsetof(RegionHeader, cache_bytes), bytes));
  return rank.region->Write(at + offsetof(RegionHeader, site_count),
                            static_cast<uint32_t>(rank.code.injection.sites.size()));
}

}  // namespace perfd::agent
