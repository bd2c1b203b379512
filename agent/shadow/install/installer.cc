#include "agent/shadow/install/installer.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "agent/procfs/cgroup/suspension.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/install/fill_region.h"
#include "agent/shadow/install/jumps.h"
#include "agent/shadow/install/loop_layout.h"
#include "agent/shadow/install/map_memory.h"
#include "agent/shadow/install/own_rights.h"
#include "agent/shadow/region_injection.h"
#include "agent/shadow/restore.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// For the audit log: nothing was written where there was nothing to write to.
absl::Status OfRestoring(const RestoreResult& result, const absl::Status& status) {
  if (!status.ok() || result.found) return status;
  return absl::NotFoundError(result.ended ? "the process has ended" : "nothing of ours was in it");
}

}  // namespace

absl::Status Installer::Map(size_t first_cache) {
  ASSIGN_OR_RETURN(const HoldReply reply, MapMemory(rank_, first_cache));
  if (first_cache > 0) return absl::OkStatus();
  return rank_.region->Write(rank_.region->address() + offsetof(RegionHeader, rights),
                             OwnRightsOf(reply));
}

absl::Status Installer::FillCaches(size_t first_cache) {
  for (size_t i = first_cache; i < rank_.code.caches.size(); ++i)
    RETURN_IF_ERROR(rank_.memory.Write(rank_.code.caches[i].address, rank_.code.caches[i].bytes));
  return absl::OkStatus();
}

std::vector<InstalledLoop> Installer::Installed(size_t first_site) const {
  std::vector<InstalledLoop> installed;
  for (size_t i = first_site; i < rank_.code.sites.size(); ++i)
    installed.push_back(rank_.code.sites[i].built.installed);
  return installed;
}

absl::StatusOr<std::vector<InstalledLoop>> Installer::Rehearse(
    const std::vector<LoopToInject>& loops) {
  ASSIGN_OR_RETURN(const ProcessStatus status, ProcFs().Status(rank_.info.pid));
  if (status.state == 'T') return absl::FailedPreconditionError("the process is stopped (SIGSTOP)");
  if (!rank_.code.sites.empty()) return absl::FailedPreconditionError("loops are installed once");
  RETURN_IF_ERROR(LoopLayout(rank_, loops).Prepare());
  return Installed(0);
}

// On disk before anything is in the rank.
absl::Status Installer::InstallPrepared() {
  RETURN_IF_ERROR(rank_.options.journal->Write(rank_.code.injection));
  rank_.code.installed = true;
  const int64_t before = rank_.hold.stop_ns();
  absl::Status status = Map(0);
  rank_.hold.Audit("map", nullptr, rank_.hold.stop_ns() - before, status);
  const int64_t mapped = rank_.hold.stop_ns();
  if (status.ok()) status = FillCaches(0);
  if (status.ok()) status = FillRegion(rank_);
  if (status.ok()) status = RefuseOthers(rank_.info.pid, rank_.code.injection.region.start);
  if (status.ok()) status = rank_.hold.MayAlter();
  if (status.ok()) status = WriteJumps(rank_);
  int64_t pause = rank_.hold.stop_ns() - mapped;
  for (PatchSite& site : rank_.code.sites) {
    if (!site.accepted()) continue;
    rank_.hold.Audit("install", &site, pause, status);
    pause = 0;
    site.patched = status.ok();
  }
  return status;
}

absl::StatusOr<std::vector<InstalledLoop>> Installer::Install(
    const std::vector<LoopToInject>& loops) {
  if (rank_.options.tracer == nullptr || rank_.options.journal == nullptr)
    return absl::InvalidArgumentError("an injector needs a tracer and a place for its journal");
  if (!rank_.code.sites.empty()) return absl::FailedPreconditionError("loops are installed once");
  RETURN_IF_ERROR(CheckNotSuspended(ProcFs(), rank_.info.pid));
  RETURN_IF_ERROR(rank_.hold.MayAlter());
  if (absl::Status status = LoopLayout(rank_, loops).Prepare(); !status.ok()) {
    Forget();
    return status;
  }
  RecordSites(0, &rank_.code);
  if (rank_.code.injection.sites.empty()) return Installed(0);  // all of them are refused
  if (absl::Status status = InstallPrepared(); !status.ok()) {
    // What it may leave is in the journal.
    if (!rank_.code.installed || Uninstall().ok()) Forget();
    return status;
  }
  rank_.addresses.Publish(rank_.code);
  return Installed(0);
}

// After an attempt that left nothing in the rank: the next one begins anew.
void Installer::Forget() {
  rank_.code.sites.clear();
  rank_.code.caches.clear();
  rank_.code.injection.sites.clear();
  rank_.code.injection.caches.clear();
  rank_.code.injection.region = {};
  rank_.region.reset();
  rank_.code.uninstall_tried = false;
}

absl::StatusOr<std::vector<InstalledLoop>> Installer::Add(const std::vector<LoopToInject>& loops) {
  if (rank_.options.tracer == nullptr)
    return absl::InvalidArgumentError("an injector needs a tracer");
  if (rank_.code.uninstall_tried)
    return absl::FailedPreconditionError("everything was taken out already");
  RETURN_IF_ERROR(rank_.hold.MayAlter());
  if (!rank_.code.installed) ForgetPlans();
  const FirstNew first{rank_.code.sites.size(), rank_.code.caches.size()};
  const size_t noted = rank_.code.injection.sites.size();
  absl::Status status = LoopLayout(rank_, loops).Prepare();
  if (status.ok()) RecordSites(first.site, &rank_.code);
  if (status.ok() && rank_.code.injection.sites.size() > noted) status = AddPrepared(first);
  if (!status.ok()) {
    RemoveNew(first, noted);
    return status;
  }
  std::vector<InstalledLoop> installed = Installed(first.site);
  if (rank_.code.injection.sites.size() == noted) ForgetCaches(first);  // nothing to put in
  rank_.addresses.Publish(rank_.code);
  return installed;
}

// All loops so far were refused and nothing was mapped. They keep their numbers.
void Installer::ForgetPlans() {
  rank_.code.caches.clear();
  rank_.code.injection.caches.clear();
  rank_.code.injection.region = {};
  rank_.region.reset();
  for (PatchSite& site : rank_.code.sites) site.index = -1;
}

// On disk before it is in the rank, as in Install.
absl::Status Installer::AddPrepared(FirstNew first) {
  RETURN_IF_ERROR(rank_.options.journal->Write(rank_.code.injection));
  rank_.code.installed = true;
  const int64_t before = rank_.hold.stop_ns();
  absl::Status status = Map(first.cache);
  if (status.ok()) status = FillCaches(first.cache);
  if (status.ok()) status = first.cache == 0 ? FillRegion(rank_) : AddSites(rank_, first.site);
  if (status.ok()) status = RefuseOthers(rank_.info.pid, rank_.code.injection.region.start);
  if (status.ok()) status = rank_.hold.Stop(ProtectOps(rank_.code.caches, first.cache)).status();
  rank_.hold.Audit("map", nullptr, rank_.hold.stop_ns() - before, status);
  return status;
}

// No jump leads to the new loops yet. What was mapped for them stays until the end, and in the journal until then.
void Installer::RemoveNew(FirstNew first, size_t noted) {
  if (first.cache == 0 && rank_.code.installed) {
    if (!Uninstall().ok()) return;  // what it leaves is in the journal
    rank_.code.uninstall_tried = false;
  }
  rank_.code.sites.erase(rank_.code.sites.begin() + static_cast<std::ptrdiff_t>(first.site),
                         rank_.code.sites.end());
  rank_.code.injection.sites.resize(std::min(noted, rank_.code.injection.sites.size()));
  if (!rank_.code.installed) return ForgetPlans();
  ForgetCaches(first);
  if (absl::Status status = rank_.options.journal->Write(rank_.code.injection); !status.ok())
    LogWarning("the journal of pid {} names more than there is: {}", rank_.info.pid,
               status.ToString());
}

void Installer::ForgetCaches(FirstNew first) {
  absl::StatusOr<std::vector<MapEntry>> maps = absl::UnknownError("it may still map");
  if (!rank_.hold.tracer_died()) maps = ProcFs().Maps(rank_.info.pid);
  for (size_t i = rank_.code.caches.size(); i > first.cache; --i) {
    const uint64_t start = rank_.code.caches[i - 1].address;
    const MapEntry* map = maps.ok() ? FindMapping(*maps, start) : nullptr;
    if (!maps.ok() || map != nullptr) continue;
    std::erase_if(rank_.code.injection.caches,
                  [&](const PcRange& range) { return range.start == start; });
  }
  rank_.code.caches.erase(rank_.code.caches.begin() + static_cast<std::ptrdiff_t>(first.cache),
                          rank_.code.caches.end());
}

absl::Status Installer::Uninstall() {
  if (!rank_.code.installed) return absl::OkStatus();
  rank_.code.uninstall_tried = true;
  RestoreResult result;
  absl::Status status = rank_.hold.StopToRestore(rank_.code.injection, &result);
  int64_t pause = 0;
  for (int64_t ns : result.stops_ns) pause += ns;
  for (PatchSite& site : rank_.code.sites) {
    if (site.index < 0 || !site.patched) continue;
    rank_.hold.Audit("restore", &site, pause, OfRestoring(result, status));
    pause = 0;  // one stop for all
    if (status.ok()) site.patched = false;
  }
  rank_.hold.Audit("unmap", nullptr, pause, OfRestoring(result, status));
  RETURN_IF_ERROR(status);
  rank_.code.installed = false;
  rank_.region->CloseDoorbell();
  rank_.addresses.Clear();
  return rank_.options.journal->Remove(rank_.code.injection);
}

}  // namespace perfd::agent
