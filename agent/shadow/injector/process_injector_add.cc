// ProcessInjector: more loops into a rank that has some. What is there is not touched: the new loops have caches of their own.
#include <algorithm>

#include "agent/procfs/procfs.h"
#include "agent/shadow/injector/process_injector.h"
#include "agent/shadow/region_injection.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace perfd::agent {

absl::StatusOr<std::vector<InstalledLoop>> ProcessInjector::Add(std::vector<LoopToInject> loops) {
  if (options_.tracer == nullptr) return absl::InvalidArgumentError("an injector needs a tracer");
  if (uninstall_tried_) return absl::FailedPreconditionError("everything was taken out already");
  RETURN_IF_ERROR(MayAlter());
  if (!installed_) ForgetPlans();
  const Batch first{sites_.size(), caches_.size()};
  const size_t noted = injection_.sites.size();
  absl::Status status = Prepare(loops);
  if (status.ok()) RecordSites(first.site);
  if (status.ok() && injection_.sites.size() > noted) status = InsertJump(first);
  if (!status.ok()) {
    RemoveJumps(first, noted);
    return status;
  }
  std::vector<InstalledLoop> installed = Installed(first.site);
  if (injection_.sites.size() == noted) ForgetCaches(first);  // nothing to put in
  PublishAddresses();
  return installed;
}

// All loops so far were refused and nothing was mapped. They keep their numbers.
void ProcessInjector::ForgetPlans() {
  caches_.clear();
  injection_.caches.clear();
  injection_.region = {};
  region_.reset();
  for (PatchSite& site : sites_) site.index = -1;
}

// On disk before it is in the rank, as in Install.
absl::Status ProcessInjector::InsertJump(Batch first) {
  RETURN_IF_ERROR(options_.journal->Write(injection_));
  installed_ = true;
  const int64_t before = cost_.stop_ns;
  absl::Status status = MapAll(first.cache);
  if (status.ok()) status = FillCaches(first.cache);
  if (status.ok()) status = first.cache == 0 ? FillRegion() : Announce(first);
  if (status.ok()) status = RefuseOthers(rank_.pid, injection_.region.start);
  if (status.ok()) status = Hold(ProtectOps(first.cache)).status();
  Audit("map", nullptr, cost_.stop_ns - before, status);
  return status;
}

// Into a region that is in use: the words that threads of the rank write are left alone.
absl::Status ProcessInjector::Announce(Batch first) {
  const uint64_t at = region_->address();
  ASSIGN_OR_RETURN(const uint64_t used,
                   region_->Read<uint64_t>(at + offsetof(RegionHeader, map_used)));
  const auto capped = static_cast<uint32_t>(std::min<uint64_t>(used, kMaxMapEntries));
  ASSIGN_OR_RETURN(const uint32_t now_used, FillSites(first.site, capped));
  RETURN_IF_ERROR(
      region_->Write(at + offsetof(RegionHeader, map_used), static_cast<uint64_t>(now_used)));
  std::vector<uint64_t> addresses, bytes;
  for (const PcRange& cache : injection_.caches) {
    addresses.push_back(cache.start);
    bytes.push_back(cache.end - cache.start);
  }
  RETURN_IF_ERROR(region_->WriteMany(at + offsetof(RegionHeader, cache_address), addresses));
  RETURN_IF_ERROR(region_->WriteMany(at + offsetof(RegionHeader, cache_bytes), bytes));
  return region_->Write(at + offsetof(RegionHeader, site_count),
                        static_cast<uint32_t>(injection_.sites.size()));
}

// No jump leads to the new loops yet. What was mapped for them stays until the end, and in the journal until then.
void ProcessInjector::RemoveJumps(Batch first, size_t noted) {
  if (first.cache == 0 && installed_) {
    if (!Uninstall().ok()) return;  // what it leaves is in the journal
    uninstall_tried_ = false;
  }
  sites_.erase(sites_.begin() + static_cast<std::ptrdiff_t>(first.site), sites_.end());
  injection_.sites.resize(std::min(noted, injection_.sites.size()));
  if (!installed_) return ForgetPlans();
  ForgetCaches(first);
  if (absl::Status status = options_.journal->Write(injection_); !status.ok())
    LogWarning("the journal of pid {} names more than there is: {}", rank_.pid, status.ToString());
}

void ProcessInjector::ForgetCaches(Batch first) {
  absl::StatusOr<std::vector<MapEntry>> maps = absl::UnknownError("it may still map");
  if (!tracer_died_) maps = ProcFs().Maps(rank_.pid);
  for (size_t i = caches_.size(); i > first.cache; --i) {
    const uint64_t start = caches_[i - 1].address;
    const MapEntry* map = maps.ok() ? FindMapping(*maps, start) : nullptr;
    if (!maps.ok() || map != nullptr) continue;
    std::erase_if(injection_.caches, [&](const PcRange& range) { return range.start == start; });
  }
  caches_.erase(caches_.begin() + static_cast<std::ptrdiff_t>(first.cache), caches_.end());
}

}  // namespace perfd::agent
