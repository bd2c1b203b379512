#include "agent/shadow/install/loop_layout.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/procfs/process_limits.h"
#include "agent/shadow/install/jumps.h"
#include "agent/variant/flow/leaf_calls.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kMostCacheBytes = 16u << 20;  // with copies at many places
constexpr uint32_t kSpareBlocks = 8;

bool Overlap(const std::vector<CodeRange>& a, const std::vector<CodeRange>& b) {
  for (const CodeRange& x : a) {
    for (const CodeRange& y : b) {
      if (x.low < y.high && y.low < x.high) return true;
    }
  }
  return false;
}

Reach SpanOf(const LoopCode& loop) {
  Reach reach{loop.header, loop.header};
  auto extend = [&](uint64_t address) {
    reach.low = std::min(reach.low, address);
    reach.high = std::max(reach.high, address);
  };
  for (const LoopInstruction& instruction : loop.instructions) {
    // What a copy needs of these lies beside it.
    if (InFarLeaf(loop, instruction.address)) continue;
    extend(instruction.address);
    extend(instruction.end());
    if (instruction.memory && instruction.memory->base == kInstructionPointer)
      extend(instruction.memory->target);
  }
  for (const auto& exits : loop.exits) {
    for (uint64_t exit : exits)
      if (!LeavesLeaf(loop, exit)) extend(exit);
  }
  return reach;
}

// Where there is no room for copies at many places, or that would be a large mapping for the rank, at fewer.
absl::StatusOr<CodeCache> FindRoom(const std::vector<MapEntry>& maps, const Reach& reach,
                                   const std::vector<const LoopToInject*>& loops,
                                   uint64_t more_bytes) {
  absl::StatusOr<CodeCache> found = absl::NotFoundError("");
  for (int32_t places : {kPlacements, kPlacements / 2, kPlacements / 4, 1}) {
    const uint64_t bound = CacheBound(loops, places);
    if (places > 1 && bound > kMostCacheBytes) continue;
    const absl::StatusOr<uint64_t> address = FindGap(maps, reach, bound + more_bytes);
    if (address.ok()) return CodeCache{reach, *address, bound, places, {}};
    found = address.status();
  }
  return found;
}

// Why a loop cannot be patched, by what is mapped where it stands.
absl::Status JudgeText(const MapEntry* map, bool moved) {
  if (map == nullptr || !map->executable)
    return absl::FailedPreconditionError("its text is not mapped");
  const bool known = map->inode != 0 || (moved && map->path.empty());
  if (map->shared || map->writable || !known)
    return absl::FailedPreconditionError("its text is not that of a file (generated at run time?)");
  return absl::OkStatus();
}

}  // namespace

LoopLayout::LoopLayout(InjectedRank& rank, const std::vector<LoopToInject>& loops)
    : rank_(rank), loops_(loops), first_{rank.code.sites.size(), rank.code.caches.size()} {}

// Two loops that share instructions cannot both be patched; the one named first wins.
absl::Status LoopLayout::RefuseUnfit() {
  ASSIGN_OR_RETURN(std::vector<MapEntry> maps, ProcFs().Maps(rank_.info.pid));
  auto accepted =
      static_cast<int32_t>(std::count_if(rank_.code.sites.begin(), rank_.code.sites.end(),
                                         [](const PatchSite& site) { return site.index >= 0; }));
  for (size_t i = 0; i < loops_.size(); ++i) {
    PatchSite& site = SiteOf(i);
    absl::Status& status = site.built.installed.status;
    const MapEntry* map = FindMapping(maps, loops_[i].code.header);
    for (const CodeRange& leaf : loops_[i].code.leaves.ranges) {
      if (status.ok()) status = JudgeText(FindMapping(maps, leaf.low), loops_[i].moved);
    }
    for (size_t k = 0; k < first_.site + i; ++k) {
      const PatchSite& other = rank_.code.sites[k];
      if (other.released || !other.built.installed.status.ok() || !Overlap(site.body, other.body))
        continue;
      status = absl::FailedPreconditionError("it shares code with another loop that is measured");
      site.blocked_by = static_cast<int32_t>(k);
    }
    if (const absl::Status text = JudgeText(map, loops_[i].moved); !text.ok()) {
      status = text;
    } else if (status.ok() && !Holds(rank_.memory, site.code)) {
      status = absl::FailedPreconditionError(
          "its text is not the one that was decoded (was its library closed, or another one "
          "loaded?)");
    } else if (status.ok() && accepted >= static_cast<int32_t>(kMaxSites)) {
      status =
          absl::ResourceExhaustedError(absl::StrCat("at most ", kMaxSites, " loops at a time"));
    }
    if (!status.ok()) continue;
    site.text = IdentityOf(*map);
    site.index = accepted++;
  }
  return absl::OkStatus();
}

std::vector<const LoopToInject*> LoopLayout::Within(const Reach& reach) {
  std::vector<const LoopToInject*> members;
  for (size_t i = 0; i < loops_.size(); ++i) {
    const uint64_t header = loops_[i].code.header;
    if (SiteOf(i).index >= 0 && header >= reach.low && header <= reach.high)
      members.push_back(&loops_[i]);
  }
  return members;
}

// Addresses of everything, so that all code can be made before anything is mapped.
absl::Status LoopLayout::Reserve() {
  ASSIGN_OR_RETURN(std::vector<MapEntry> maps, ProcFs().Maps(rank_.info.pid));
  const size_t there = maps.size();
  ASSIGN_OR_RETURN(std::vector<int32_t> threads, ProcFs().Threads(rank_.info.pid));
  const auto blocks =
      std::min<uint32_t>(kMaxTeam, static_cast<uint32_t>(threads.size()) + kSpareBlocks);
  std::vector<Reach> spans;
  for (size_t i = 0; i < loops_.size(); ++i) {
    if (SiteOf(i).index >= 0) spans.push_back(SpanOf(loops_[i].code));
  }
  ASSIGN_OR_RETURN(std::vector<Reach> groups,
                   GroupByReach(spans, kMaxCaches - rank_.code.injection.caches.size()));
  uint64_t region_bytes = rank_.region ? 0 : RegionBytes(blocks);
  for (const Reach& reach : groups) {
    // The region follows the first cache.
    ASSIGN_OR_RETURN(CodeCache cache, FindRoom(maps, reach, Within(reach), region_bytes));
    if (region_bytes != 0) {
      rank_.code.injection.region = {cache.address + cache.bound,
                                     cache.address + cache.bound + region_bytes};
      rank_.region.emplace(&rank_.memory, rank_.code.injection.region.start, blocks);
      region_bytes = 0;
      MapEntry taken;
      taken.start = cache.address;
      taken.end = rank_.code.injection.region.end;
      maps.insert(
          std::upper_bound(maps.begin(), maps.end(), taken,
                           [](const MapEntry& a, const MapEntry& b) { return a.start < b.start; }),
          taken);
    }
    rank_.code.caches.push_back(std::move(cache));
  }
  return CheckMappingRoom(ProcFs(), there, groups.size() + 1);
}

absl::Status LoopLayout::Build() {
  for (size_t k = first_.cache; k < rank_.code.caches.size(); ++k) {
    CodeCache& cache = rank_.code.caches[k];
    CacheBuilder builder(cache.address, cache.bound, cache.places);
    for (size_t i = 0; i < loops_.size(); ++i) {
      PatchSite& site = SiteOf(i);
      const uint64_t header = loops_[i].code.header;
      if (site.index < 0 || header < cache.reach.low || header > cache.reach.high) continue;
      const SiteAddresses addresses{rank_.region->SiteAddress(site.number()),
                                    rank_.region->TurnsAddress(site.number())};
      site.built = builder.Build(loops_[i], addresses, rank_.options.recovery);
      site.empty_copy = builder.empty_copy();
    }
    cache.bytes = builder.bytes();
    rank_.code.injection.caches.push_back({cache.address, cache.address + cache.bound});
  }
  return absl::OkStatus();
}

// Of the mappings that are to come.
uint64_t LoopLayout::NewBytes() const {
  const PcRange& region = rank_.code.injection.region;
  uint64_t bytes = first_.cache == 0 ? region.end - region.start : 0;
  for (size_t i = first_.cache; i < rank_.code.caches.size(); ++i)
    bytes += rank_.code.caches[i].bound;
  return bytes;
}

absl::Status LoopLayout::Prepare() {
  for (const LoopToInject& loop : loops_) {
    PatchSite& site = rank_.code.sites.emplace_back();
    site.loop_id = loop.loop_id;
    site.body = loop.code.body;
    site.code = CodeOf(loop.code);
  }
  RETURN_IF_ERROR(RefuseUnfit());
  RETURN_IF_ERROR(Reserve());
  // The program may be about to ask for the last that its limits leave it.
  ASSIGN_OR_RETURN(const ProcessLimits limits, ReadProcessLimits(ProcFs(), rank_.info.pid));
  RETURN_IF_ERROR(CheckCpuTime(limits));
  RETURN_IF_ERROR(CheckRoom(limits, NewBytes()));
  return Build();
}

void RecordSites(size_t first_site, InjectedCode* code) {
  for (size_t i = first_site; i < code->sites.size(); ++i) {
    const PatchSite& site = code->sites[i];
    if (!site.accepted()) continue;
    InjectedSite noted;
    noted.loop_id = site.loop_id;
    noted.header = site.built.patch.address;
    noted.original.assign(site.built.patch.original.begin(), site.built.patch.original.end());
    noted.written.assign(site.built.jump.begin(), site.built.jump.end());
    noted.text = site.text;
    noted.pairs = site.built.pairs;
    code->injection.sites.push_back(std::move(noted));
  }
}

}  // namespace perfd::agent
