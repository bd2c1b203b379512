// ProcessInjector: from loops to a patched rank. Everything is laid out and written to disk before the first stop.
#include <linux/capability.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "agent/procfs/cgroup/suspension.h"
#include "agent/procfs/process_limits.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/cpu_state.h"
#include "agent/shadow/forking/process_files.h"
#include "agent/shadow/gaps.h"
#include "agent/shadow/injector/process_injector.h"
#include "agent/shadow/region_injection.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kMostCacheBytes = 16u << 20;  // with copies at many places
constexpr uint32_t kSpareBlocks = 8;
constexpr int64_t kStaleNs =
    1'000'000'000;  // a payload without an agent for so long passes through

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
    extend(instruction.address);
    extend(instruction.end());
    if (instruction.memory && instruction.memory->base == kInstructionPointer)
      extend(instruction.memory->target);
  }
  for (const auto& exits : loop.exits) {
    for (uint64_t exit : exits) extend(exit);
  }
  return reach;
}

bool Holds(const Memory& memory, const std::vector<ExpectBytesOp>& code) {
  return std::all_of(code.begin(), code.end(), [&](const ExpectBytesOp& piece) {
    const auto bytes = memory.Read(piece.address.number, piece.bytes.size());
    return bytes.ok() && *bytes == piece.bytes;
  });
}

CallOp MapCall(uint64_t address, uint64_t bytes, uint64_t protection, uint64_t flags) {
  CallOp call;
  call.call = SYS_mmap;
  call.arguments = {OpValue{address},      OpValue{bytes},
                    OpValue{protection},   OpValue{flags | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE},
                    OpValue{~uint64_t{0}}, OpValue{0}};
  call.expect = CallOp::Expect::kEqual;
  call.expected = address;
  return call;
}

// What a thread of the rank says of itself, while it is known to be the one that was admitted. Made by system calls of the rank in its region, before that is filled.
struct RightsScratch {
  uint32_t uids[3], gids[3];
  __user_cap_header_struct whose;
  __user_cap_data_struct sets[2];
};

static_assert(sizeof(RightsScratch) <= kMaxMapEntries * sizeof(InstructionPair));

std::vector<HoldOp> RightsOps(uint64_t scratch) {
  constexpr size_t kWhose = offsetof(RightsScratch, whose);
  const auto ids_at = [scratch](int64_t call, uint64_t offset) {
    CallOp op;
    op.call = call;
    for (size_t i = 0; i < 3; ++i) op.arguments[i] = OpValue{scratch + offset + 4 * i};
    return op;
  };
  const __user_cap_header_struct whose{_LINUX_CAPABILITY_VERSION_3, 0};
  const auto* bytes = reinterpret_cast<const uint8_t*>(&whose);
  CallOp sets;
  sets.call = SYS_capget;
  sets.arguments[0] = OpValue{scratch + kWhose};
  sets.arguments[1] = OpValue{scratch + offsetof(RightsScratch, sets)};
  CallOp dumpable;
  dumpable.call = SYS_prctl;
  dumpable.arguments[0] = OpValue{PR_GET_DUMPABLE};
  return {WriteOp{{scratch + kWhose}, {bytes, bytes + sizeof whose}},
          ids_at(SYS_getresuid, offsetof(RightsScratch, uids)),
          ids_at(SYS_getresgid, offsetof(RightsScratch, gids)),
          sets,
          ReadOp{{scratch}, sizeof(RightsScratch)},
          dumpable};
}

// The last two results are the bytes and the answer of prctl.
OwnRights RightsOfReply(const HoldReply& reply) {
  const auto& results = reply.results;
  OwnRights rights{};
  if (results.size() < 2) return rights;
  const std::vector<uint8_t>& bytes = results[results.size() - 2].bytes;
  RightsScratch read{};
  std::memcpy(&read, bytes.data(), std::min(bytes.size(), sizeof read));
  std::copy_n(read.uids, 3, rights.uids);
  std::copy_n(read.gids, 3, rights.gids);
  rights.capabilities = uint64_t{read.sets[1].permitted} << 32 | read.sets[0].permitted;
  rights.dumpable = results.back().value;
  return rights;
}

}  // namespace

// Where there is no room for copies at many places, or that would be a large mapping for the rank, at one.
absl::StatusOr<ProcessInjector::Cache> ProcessInjector::FindSite(
    const std::vector<MapEntry>& maps, const Reach& reach,
    const std::vector<const LoopToInject*>& loops, uint64_t more_bytes) {
  absl::StatusOr<Cache> found = absl::NotFoundError("");
  for (int32_t places : {kPlacements, 1}) {
    const uint64_t bound = CacheBound(loops, places);
    if (places > 1 && bound > kMostCacheBytes) continue;
    const absl::StatusOr<uint64_t> address = FindGap(maps, reach, bound + more_bytes);
    if (address.ok()) return Cache{reach, *address, bound, places, {}};
    found = address.status();
  }
  return found;
}

// Two loops that share instructions cannot both be patched; the one named first wins.
absl::Status ProcessInjector::RefuseUnfit(const std::vector<LoopToInject>& loops) {
  ASSIGN_OR_RETURN(std::vector<MapEntry> maps, ProcFs().Maps(rank_.pid));
  const size_t first = sites_.size() - loops.size();
  auto accepted = static_cast<int32_t>(std::count_if(
      sites_.begin(), sites_.end(), [](const PatchSite& site) { return site.index >= 0; }));
  for (size_t i = 0; i < loops.size(); ++i) {
    PatchSite& site = sites_[first + i];
    absl::Status& status = site.built.installed.status;
    const MapEntry* map = FindMapping(maps, loops[i].code.header);
    for (size_t k = 0; k < first + i; ++k) {
      if (sites_[k].built.installed.status.ok() && Overlap(site.body, sites_[k].body))
        status = absl::FailedPreconditionError("it shares code with another loop that is measured");
    }
    if (map == nullptr || !map->executable) {
      status = absl::FailedPreconditionError("its text is not mapped");
    } else if (map->shared || map->writable || map->inode == 0) {
      status =
          absl::FailedPreconditionError("its text is not that of a file (generated at run time?)");
    } else if (status.ok() && !Holds(memory_, site.code)) {
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

// Addresses of everything, so that all code can be made before anything is mapped.
absl::Status ProcessInjector::Lay(const std::vector<LoopToInject>& loops) {
  ASSIGN_OR_RETURN(std::vector<MapEntry> maps, ProcFs().Maps(rank_.pid));
  ASSIGN_OR_RETURN(std::vector<int32_t> threads, ProcFs().Threads(rank_.pid));
  const auto blocks =
      std::min<uint32_t>(kMaxTeam, static_cast<uint32_t>(threads.size()) + kSpareBlocks);
  const size_t first = sites_.size() - loops.size();
  std::vector<Reach> spans;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (sites_[first + i].index >= 0) spans.push_back(SpanOf(loops[i].code));
  }
  ASSIGN_OR_RETURN(std::vector<Reach> groups,
                   GroupByReach(spans, kMaxCaches - injection_.caches.size()));
  uint64_t region_bytes = region_ ? 0 : RegionBytes(blocks);
  for (const Reach& reach : groups) {
    std::vector<const LoopToInject*> members;
    for (size_t i = 0; i < loops.size(); ++i) {
      const uint64_t header = loops[i].code.header;
      if (sites_[first + i].index >= 0 && header >= reach.low && header <= reach.high)
        members.push_back(&loops[i]);
    }
    // The region follows the first cache.
    ASSIGN_OR_RETURN(Cache cache, FindSite(maps, reach, members, region_bytes));
    if (region_bytes != 0) {
      injection_.region = {cache.address + cache.bound, cache.address + cache.bound + region_bytes};
      region_.emplace(&memory_, injection_.region.start, blocks);
      region_bytes = 0;
      MapEntry taken;
      taken.start = cache.address;
      taken.end = injection_.region.end;
      maps.insert(
          std::upper_bound(maps.begin(), maps.end(), taken,
                           [](const MapEntry& a, const MapEntry& b) { return a.start < b.start; }),
          taken);
    }
    caches_.push_back(std::move(cache));
  }
  return absl::OkStatus();
}

absl::Status ProcessInjector::BuildAll(const std::vector<LoopToInject>& loops, size_t first_cache) {
  const size_t first = sites_.size() - loops.size();
  for (size_t k = first_cache; k < caches_.size(); ++k) {
    Cache& cache = caches_[k];
    CacheBuilder builder(cache.address, cache.bound, cache.places);
    for (size_t i = 0; i < loops.size(); ++i) {
      PatchSite& site = sites_[first + i];
      const uint64_t header = loops[i].code.header;
      if (site.index < 0 || header < cache.reach.low || header > cache.reach.high) continue;
      site.built = builder.Build(loops[i], region_->SiteAddress(static_cast<uint32_t>(site.index)),
                                 options_.recovery);
      site.empty_copy = builder.empty_copy();
    }
    cache.bytes = builder.bytes();
    injection_.caches.push_back({cache.address, cache.address + cache.bound});
  }
  return absl::OkStatus();
}

// What the journal needs. Sites that were refused when built keep their index; nothing is written for them.
void ProcessInjector::RecordSites(size_t first_site) {
  for (size_t i = first_site; i < sites_.size(); ++i) {
    const PatchSite& site = sites_[i];
    if (site.index < 0 || !site.built.installed.status.ok()) continue;
    InjectedSite noted;
    noted.loop_id = site.loop_id;
    noted.header = site.built.patch.address;
    noted.original.assign(site.built.patch.original.begin(), site.built.patch.original.end());
    noted.written.assign(site.built.jump.begin(), site.built.jump.end());
    noted.text = site.text;
    noted.pairs = site.built.live.address_map;
    if (site.built.timed) {
      noted.pairs.insert(noted.pairs.end(), site.built.timed->address_map.begin(),
                         site.built.timed->address_map.end());
    }
    injection_.sites.push_back(std::move(noted));
  }
}

absl::Status ProcessInjector::MapAll(size_t first_cache) {
  std::vector<HoldOp> ops;
  for (size_t i = first_cache; i < caches_.size(); ++i) {
    ops.push_back(
        MapCall(caches_[i].address, caches_[i].bound, PROT_READ | PROT_WRITE, MAP_PRIVATE));
  }
  const PcRange& region = injection_.region;
  if (first_cache == 0) {
    ops.push_back(
        MapCall(region.start, region.end - region.start, PROT_READ | PROT_WRITE, MAP_SHARED));
    // Where pairs of addresses come later. The region begins with zeros until it is filled: by them it is known if this fails.
    for (HoldOp& op : RightsOps(region_->MapAddress())) ops.push_back(std::move(op));
  }
  ASSIGN_OR_RETURN(const HoldReply reply, Hold(std::move(ops)));
  if (first_cache > 0) return absl::OkStatus();
  return region_->Write(region_->address() + offsetof(RegionHeader, rights), RightsOfReply(reply));
}

absl::Status ProcessInjector::FillCaches(size_t first_cache) {
  for (size_t i = first_cache; i < caches_.size(); ++i)
    RETURN_IF_ERROR(memory_.Write(caches_[i].address, caches_[i].bytes));
  return absl::OkStatus();
}

absl::Status ProcessInjector::FillRegion() {
  ASSIGN_OR_RETURN(NamespacePid pid, ReadNamespacePid(rank_.pid));
  RegionHeader header{};
  header.magic = kShadowMagic;
  header.version = kShadowLayoutVersion;
  header.header_bytes = sizeof(RegionHeader);
  header.region_bytes = injection_.region.end - injection_.region.start;
  header.region_address = injection_.region.start;
  for (size_t i = 0; i < caches_.size(); ++i) {
    header.cache_address[i] = caches_[i].address;
    header.cache_bytes[i] = caches_[i].bound;
  }
  header.pid = static_cast<uint32_t>(pid.inner);
  constexpr uint64_t kFsgsbase = 2;  // arch/x86/include/uapi/asm/hwcap2.h
  if (getauxval(AT_HWCAP2) & kFsgsbase) header.flags = kRegionHasFsgsbase;
  header.flags |= kRegionHasRights;
  ASSIGN_OR_RETURN(header.rights,
                   region_->Read<OwnRights>(region_->address() + offsetof(RegionHeader, rights)));
  header.start_ticks = rank_.start_ticks;
  header.site_count = static_cast<uint32_t>(injection_.sites.size());
  header.block_count = region_->blocks();
  ASSIGN_OR_RETURN(header.xsave_mask, XsaveMaskOfThisCpu());
  header.heartbeat_ticks = TickClock::Ticks();
  header.stale_ticks = ticks_.ToTicks(kStaleNs);
  ASSIGN_OR_RETURN(header.map_used, FillSites(0, 0));
  doorbell_.emplace(&memory_, region_->address());
  return region_->Write(region_->address(), header);
}

// The entries of the map that are used then.
absl::StatusOr<uint32_t> ProcessInjector::FillSites(size_t first_site, uint32_t map_used) {
  uint32_t used = map_used;
  for (size_t k = first_site; k < sites_.size(); ++k) {
    const PatchSite& patch_site = sites_[k];
    if (patch_site.index < 0 || !patch_site.built.installed.status.ok()) continue;
    const BuiltLoop& built = patch_site.built;
    Site site{};
    site.index = static_cast<uint32_t>(patch_site.index);
    site.region = injection_.region.start;
    site.header_address = built.patch.address;
    site.trampoline = built.trampoline;
    site.live_copy = built.live.entry;
    site.timed_copy = built.timed ? built.timed->entry : 0;
    site.stolen_bytes = kJumpBytes;
    std::copy(built.patch.original.begin(), built.patch.original.end(), site.original);
    std::copy(built.jump.begin(), built.jump.end(), site.written);
    std::vector<InstructionPair> pairs;
    for (const CodeCopy* copy : {&built.live, built.timed ? &*built.timed : nullptr}) {
      for (size_t i = 0; copy != nullptr && i < copy->address_map.size(); ++i) {
        pairs.push_back({copy->address_map[i].original, copy->address_map[i].copy});
      }
    }
    if (used + pairs.size() <= kMaxMapEntries) {
      site.map_first = used;
      site.map_count = static_cast<uint32_t>(pairs.size());
      RETURN_IF_ERROR(
          region_->WriteMany(region_->MapAddress() + used * sizeof(InstructionPair), pairs));
      used += site.map_count;
    }
    RETURN_IF_ERROR(region_->Write(region_->SiteAddress(site.index), site));
  }
  return used;
}

std::vector<HoldOp> ProcessInjector::ProtectOps(size_t first_cache) const {
  std::vector<HoldOp> ops;
  for (size_t i = first_cache; i < caches_.size(); ++i) {
    CallOp protect;
    protect.call = SYS_mprotect;
    protect.arguments = {OpValue{caches_[i].address}, OpValue{caches_[i].bound},
                         OpValue{PROT_READ | PROT_EXEC}};
    protect.expect = CallOp::Expect::kEqual;
    protect.expected = 0;
    ops.push_back(protect);
  }
  return ops;
}

void ProcessInjector::PublishAddresses() {
  std::vector<AddressPair> addresses;
  auto add = [&](const CodeCopy& copy) {
    addresses.insert(addresses.end(), copy.address_map.begin(), copy.address_map.end());
  };
  for (const PatchSite& site : sites_) {
    if (site.index < 0 || !site.built.installed.status.ok()) continue;
    addresses.push_back({site.built.patch.address, site.built.trampoline});
    add(site.built.live);
    if (site.built.timed) add(*site.built.timed);
    for (const CodeCopy& copy : site.built.installed.copies) add(copy);
  }
  std::sort(addresses.begin(), addresses.end(),
            [](const AddressPair& a, const AddressPair& b) { return a.copy < b.copy; });
  MutexLock lock(&mutex_);
  code_ = injection_.caches;
  addresses_ = std::move(addresses);
}

// Reads the rank and touches nothing.
absl::Status ProcessInjector::Prepare(const std::vector<LoopToInject>& loops) {
  const size_t first_cache = caches_.size();
  for (const LoopToInject& loop : loops) {
    PatchSite& site = sites_.emplace_back();
    site.loop_id = loop.loop_id;
    site.body = loop.code.body;
    site.code = CodeOf(loop.code);
  }
  RETURN_IF_ERROR(RefuseUnfit(loops));
  RETURN_IF_ERROR(Lay(loops));
  // The program may be about to ask for the last that its limits leave it.
  uint64_t bytes = first_cache == 0 ? injection_.region.end - injection_.region.start : 0;
  for (size_t i = first_cache; i < caches_.size(); ++i) bytes += caches_[i].bound;
  ASSIGN_OR_RETURN(const ProcessLimits limits, ReadProcessLimits(ProcFs(), rank_.pid));
  RETURN_IF_ERROR(CheckRoom(limits, bytes));
  return BuildAll(loops, first_cache);
}

// After an attempt that left nothing in the rank: the next one begins anew.
void ProcessInjector::Forget() {
  sites_.clear();
  caches_.clear();
  injection_.sites.clear();
  injection_.caches.clear();
  injection_.region = {};
  region_.reset();
  uninstall_tried_ = false;
}

std::vector<InstalledLoop> ProcessInjector::Installed(size_t first_site) const {
  std::vector<InstalledLoop> installed;
  for (size_t i = first_site; i < sites_.size(); ++i)
    installed.push_back(sites_[i].built.installed);
  return installed;
}

absl::StatusOr<std::vector<InstalledLoop>> ProcessInjector::Rehearse(
    std::vector<LoopToInject> loops) {
  ASSIGN_OR_RETURN(const ProcessStatus status, ProcFs().Status(rank_.pid));
  if (status.state == 'T') return absl::FailedPreconditionError("the process is stopped (SIGSTOP)");
  if (!sites_.empty()) return absl::FailedPreconditionError("loops are installed once");
  RETURN_IF_ERROR(Prepare(loops));
  return Installed(0);
}

absl::StatusOr<std::vector<InstalledLoop>> ProcessInjector::Install(
    std::vector<LoopToInject> loops) {
  if (options_.tracer == nullptr || options_.journal == nullptr)
    return absl::InvalidArgumentError("an injector needs a tracer and a place for its journal");
  if (!sites_.empty()) return absl::FailedPreconditionError("loops are installed once");
  RETURN_IF_ERROR(CheckNotSuspended(ProcFs(), rank_.pid));
  RETURN_IF_ERROR(MayAlter());
  RETURN_IF_ERROR(Prepare(loops));
  RecordSites(0);
  if (!injection_.sites.empty()) {
    RETURN_IF_ERROR(options_.journal->Write(injection_));
    installed_ = true;
    const int64_t before = cost_.stop_ns;
    absl::Status status = MapAll(0);
    Audit("map", nullptr, cost_.stop_ns - before, status);
    const int64_t mapped = cost_.stop_ns;
    if (status.ok()) status = FillCaches(0);
    if (status.ok()) status = FillRegion();
    if (status.ok()) status = RefuseOthers(rank_.pid, injection_.region.start);
    if (status.ok()) status = MayAlter();
    if (status.ok()) status = PatchAll();
    int64_t pause = cost_.stop_ns - mapped;
    for (PatchSite& site : sites_) {
      if (site.index < 0 || !site.built.installed.status.ok()) continue;
      Audit("install", &site, pause, status);
      pause = 0;
      site.patched = status.ok();
    }
    if (!status.ok()) {
      if (Uninstall().ok()) Forget();  // else: what it leaves is in the journal
      return status;
    }
    PublishAddresses();
  }
  return Installed(0);
}

}  // namespace perfd::agent
