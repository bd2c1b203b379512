#include "agent/shadow/injector/process_injector.h"

#include <utility>

#include "agent/procfs/procfs.h"
#include "agent/shadow/forking/preconditions.h"
#include "agent/shadow/install/installer.h"
#include "agent/shadow/install/jumps.h"
#include "agent/shadow/run/armed_shadow.h"
#include "agent/shadow/run/in_situ_run.h"
#include "agent/shadow/watch/entry_counting.h"
#include "agent/shadow/watch/live_timing.h"
#include "core/base/status_macros.h"

namespace perfd::agent {

absl::StatusOr<std::unique_ptr<RankInjector>> RankInjector::Open(const RankInfo& rank,
                                                                 InjectorOptions options) {
  ASSIGN_OR_RETURN(std::unique_ptr<ProcessInjector> injector,
                   ProcessInjector::Open(rank, std::move(options)));
  return injector;
}

absl::StatusOr<std::unique_ptr<ProcessInjector>> ProcessInjector::Open(const RankInfo& rank,
                                                                       InjectorOptions options) {
  if (options.answers) RETURN_IF_ERROR(options.answers(rank.pid));
  ASSIGN_OR_RETURN(Memory memory, Memory::Open(rank.pid, rank.start_ticks));
  // After the opening: what is open stays that address space, whatever the process becomes.
  ASSIGN_OR_RETURN(const Admission now, ReadAdmission(ProcFs(), rank.pid));
  if (!options.admitted.has_value()) options.admitted = now;
  RETURN_IF_ERROR(CheckUnchanged(*options.admitted, now, rank.pid));
  // Before the memory is walked through: that takes longer still.
  RETURN_IF_ERROR(CheckMappings(ProcFs(), rank.pid, options.max_stop_ns));
  MemoryWalk walk(rank.pid);
  ASSIGN_OR_RETURN(const MemoryFacts facts, walk.Facts());
  ASSIGN_OR_RETURN(RankHazards hazards, ReadHazards(rank.pid, facts, options.ranks_at_once));
  RETURN_IF_ERROR(JudgeHazards(hazards));
  RETURN_IF_ERROR(HealBefore(rank, options));
  return std::unique_ptr<ProcessInjector>(
      new ProcessInjector(rank, std::move(options), std::move(memory), std::move(walk)));
}

ProcessInjector::ProcessInjector(const RankInfo& rank, InjectorOptions options, Memory memory,
                                 MemoryWalk walk)
    : rank_(rank, std::move(options), std::move(memory)),
      forecast_(rank_, std::move(walk)),
      trimmed_forks_(rank_, forecast_) {}

ProcessInjector::~ProcessInjector() {
  // Once Uninstall has been tried the tracer may be gone; what is left is in the journal.
  if (rank_.code.installed && !rank_.code.uninstall_tried) Uninstall().IgnoreError();
}

absl::StatusOr<std::vector<InstalledLoop>> ProcessInjector::Install(
    std::vector<LoopToInject> loops) {
  return Installer(rank_).Install(loops);
}

absl::StatusOr<std::vector<InstalledLoop>> ProcessInjector::Add(std::vector<LoopToInject> loops) {
  return Installer(rank_).Add(loops);
}

absl::StatusOr<std::vector<InstalledLoop>> ProcessInjector::Rehearse(
    std::vector<LoopToInject> loops) {
  return Installer(rank_).Rehearse(loops);
}

absl::StatusOr<EntryCount> ProcessInjector::CountEntries(int32_t loop, int64_t ns) {
  ASSIGN_OR_RETURN(const PatchSite* site, rank_.PatchedSiteOf(loop));
  ASSIGN_OR_RETURN(const EntryCount entry_count, agent::CountEntries(rank_, *site, ns));
  return entry_count;
}

ShadowPrediction ProcessInjector::PredictShadow() {
  return forecast_.Predict();
}

ShadowPrediction ProcessInjector::PredictTrimmed(const Footprint& footprint, int32_t team) {
  return trimmed_forks_.Predict(footprint, team);
}

absl::StatusOr<ShadowAnswer> ProcessInjector::RunShadow(const ShadowRequest& request) {
  ASSIGN_OR_RETURN(PatchSite * site, rank_.PatchedSiteOf(request.loop));
  return ArmedShadow(rank_, forecast_, trimmed_forks_, *site, request).Run();
}

absl::StatusOr<std::vector<uint64_t>> ProcessInjector::TimeLive(int32_t loop, int32_t count,
                                                                int64_t timeout_ns) {
  ASSIGN_OR_RETURN(const PatchSite* site, rank_.PatchedSiteOf(loop));
  return agent::TimeLive(rank_, *site, count, timeout_ns);
}

absl::StatusOr<std::vector<LiveBatch>> ProcessInjector::TimeLiveBatches(int32_t loop, int32_t count,
                                                                        uint64_t turns,
                                                                        int64_t timeout_ns) {
  ASSIGN_OR_RETURN(const PatchSite* site, rank_.PatchedSiteOf(loop));
  return agent::TimeLiveBatches(rank_, *site, count, turns, timeout_ns);
}

absl::StatusOr<RecoveryAnswer> ProcessInjector::Recover(const RecoveryRequest& request) {
  ASSIGN_OR_RETURN(const PatchSite* site, rank_.PatchedSiteOf(request.loop));
  return InSituRun(rank_, forecast_, *site, request).Run();
}

absl::Status ProcessInjector::SetPatched(int32_t loop, bool patched) {
  ASSIGN_OR_RETURN(PatchSite * site, rank_.SiteOf(loop));
  return agent::SetPatched(rank_, *site, patched);
}

std::optional<int32_t> ProcessInjector::BlockedBy(int32_t loop) const {
  const std::vector<PatchSite>& sites = rank_.code.sites;
  const bool known = loop >= 0 && static_cast<size_t>(loop) < sites.size();
  return known ? sites[static_cast<size_t>(loop)].blocked_by : std::nullopt;
}

absl::Status ProcessInjector::Release(int32_t loop) {
  const std::vector<PatchSite>& sites = rank_.code.sites;
  const bool known = loop >= 0 && static_cast<size_t>(loop) < sites.size();
  if (known && !sites[static_cast<size_t>(loop)].accepted()) return absl::OkStatus();  // never in
  ASSIGN_OR_RETURN(PatchSite * site, rank_.SiteOf(loop));
  RETURN_IF_ERROR(agent::SetPatched(rank_, *site, false));
  site->released = true;
  return absl::OkStatus();
}

absl::Status ProcessInjector::Uninstall() {
  return Installer(rank_).Uninstall();
}

std::optional<RuntimeAddress> ProcessInjector::OriginalAddress(RuntimeAddress address) const {
  return rank_.addresses.Original(address);
}

absl::Status ProcessInjector::StillAdmitted() const {
  return rank_.hold.StillAdmitted();
}

}  // namespace perfd::agent
