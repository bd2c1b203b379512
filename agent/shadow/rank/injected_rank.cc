#include "agent/shadow/rank/injected_rank.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/shadow/forking/process_files.h"
#include "core/base/status_macros.h"

namespace perfd::agent {

InjectedRank::InjectedRank(const RankInfo& rank, InjectorOptions injector_options,
                           Memory rank_memory)
    : info(rank),
      options(std::move(injector_options)),
      memory(std::move(rank_memory)),
      hold(info, options, &cost) {
  code.injection.pid = info.pid;
  code.injection.start_ticks = info.start_ticks;
  code.injection.boot_id = BootId();
}

absl::StatusOr<PatchSite*> InjectedRank::SiteOf(int32_t loop) {
  if (loop < 0 || static_cast<size_t>(loop) >= code.sites.size())
    return absl::InvalidArgumentError(absl::StrCat("no loop ", loop));
  PatchSite& site = code.sites[static_cast<size_t>(loop)];
  if (!site.built.installed.status.ok()) return site.built.installed.status;
  if (!code.installed) return absl::FailedPreconditionError("no loop is installed");
  return &site;
}

absl::StatusOr<PatchSite*> InjectedRank::PatchedSiteOf(int32_t loop) {
  ASSIGN_OR_RETURN(PatchSite * site, SiteOf(loop));
  RETURN_IF_ERROR(hold.MayAlter());
  // The jump could not be put back just now: the threads did not come to rest in time.
  if (!site->patched) return absl::UnavailableError("the loop is not patched");
  return site;
}

}  // namespace perfd::agent
