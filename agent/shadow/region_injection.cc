#include "agent/shadow/region_injection.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/attach/memory.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/forking/process_files.h"
#include "agent/shadow/region_access.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

absl::Status Damaged(int32_t pid, absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat("process ", pid, ": the region is damaged: ", what));
}

absl::StatusOr<InjectedSite> ReadSite(const RegionAccess& region, const Site& site,
                                      const std::vector<MapEntry>& maps) {
  if (site.stolen_bytes == 0 || site.stolen_bytes > kMaxStolenBytes ||
      site.map_count > kMaxMapEntries || site.map_first > kMaxMapEntries - site.map_count)
    return absl::InvalidArgumentError("a site has impossible sizes");
  InjectedSite out;
  out.header = site.header_address;
  out.original.assign(site.original, site.original + site.stolen_bytes);
  out.written.assign(site.written, site.written + site.stolen_bytes);
  const MapEntry* map = FindMapping(maps, out.header);
  if (map != nullptr) out.text = IdentityOf(*map);
  ASSIGN_OR_RETURN(
      std::vector<InstructionPair> pairs,
      region.ReadMany<InstructionPair>(
          region.MapAddress() + site.map_first * sizeof(InstructionPair), site.map_count));
  for (const InstructionPair& pair : pairs) out.pairs.push_back({pair.original, pair.copy});
  return out;
}

absl::StatusOr<Injection> ReadRegion(int32_t pid, const Memory& memory, const MapEntry& map,
                                     const std::vector<MapEntry>& maps) {
  auto header = RegionAccess(&memory, map.start, 1).Read<RegionHeader>(map.start);
  if (!header.ok() || header->magic != kShadowMagic) return absl::NotFoundError("not ours");
  if (header->version != kShadowLayoutVersion)
    return absl::FailedPreconditionError(absl::StrCat(
        "process ", pid, " was injected into by another version (layout ", header->version, ")"));
  if (header->block_count == 0 || header->block_count > kMaxTeam ||
      header->region_address != map.start ||
      header->region_bytes != RegionBytes(header->block_count))
    return Damaged(pid, "its sizes do not fit together");
  RegionAccess region(&memory, map.start, header->block_count);
  Injection injection;
  injection.pid = pid;
  injection.start_ticks = header->start_ticks;
  injection.boot_id = BootId();
  injection.region = {map.start, map.start + header->region_bytes};
  for (uint32_t i = 0; i < kMaxCaches; ++i) {
    const uint64_t bytes = header->cache_bytes[i];
    if (bytes != 0 && bytes <= UINT32_MAX)
      injection.caches.push_back({header->cache_address[i], header->cache_address[i] + bytes});
  }
  ASSIGN_OR_RETURN(std::vector<Site> sites,
                   region.ReadMany<Site>(region.SiteAddress(0), kMaxSites));
  for (const Site& site : sites) {
    if (site.header_address == 0) continue;
    auto injected = ReadSite(region, site, maps);
    if (!injected.ok()) return Damaged(pid, injected.status().message());
    injection.sites.push_back(*std::move(injected));
  }
  return injection;
}

}  // namespace

absl::StatusOr<Injection> ReadInjectionFromRank(int32_t pid, uint64_t own_region) {
  ProcFs procfs;
  ASSIGN_OR_RETURN(uint64_t start_ticks, procfs.StartTicks(pid));
  ASSIGN_OR_RETURN(Memory memory, Memory::Open(pid, start_ticks));
  ASSIGN_OR_RETURN(std::vector<MapEntry> maps, procfs.Maps(pid));
  for (const MapEntry& map : maps) {
    const bool anonymous = map.path.empty() || map.path == "/dev/zero";
    if (!map.shared || !map.writable || !anonymous || map.start == own_region) continue;
    auto injection = ReadRegion(pid, memory, map, maps);
    if (absl::IsNotFound(injection.status())) continue;
    RETURN_IF_ERROR(injection.status());
    if (injection->start_ticks != start_ticks) {
      // A child of the rank inherited it; its text has our jumps, too.
      injection->start_ticks = start_ticks;
    }
    return injection;
  }
  return absl::NotFoundError(absl::StrCat("nothing of ours is in process ", pid));
}

absl::Status RefuseOthers(int32_t pid, uint64_t own_region) {
  const absl::Status other = ReadInjectionFromRank(pid, own_region).status();
  if (absl::IsNotFound(other)) return absl::OkStatus();
  return absl::FailedPreconditionError("another agent alters it");
}

}  // namespace perfd::agent
