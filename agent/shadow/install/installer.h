// agent/shadow/install/installer.h - puts loops into a rank and takes all of them out again.
//
// Shape    lay out, write the journal, map, fill, put the jumps in; a failure takes back what was done.
// Errors   those of RankHold::Stop and of LoopLayout; as RankInjector.
// Threads  thread-compatible; the tracer's thread.
// Source   design section 6, steps 1 to 4 and 9.
#ifndef AGENT_SHADOW_INSTALL_INSTALLER_H_
#define AGENT_SHADOW_INSTALL_INSTALLER_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/shadow/rank/injected_rank.h"
#include "agent/shadow/rank_injector.h"

namespace perfd::agent {

class Installer {
 public:
  explicit Installer(InjectedRank& rank) : rank_(rank) {}

  absl::StatusOr<std::vector<InstalledLoop>> Install(const std::vector<LoopToInject>& loops);
  // The new loops have caches of their own; what is there is not touched.
  absl::StatusOr<std::vector<InstalledLoop>> Add(const std::vector<LoopToInject>& loops);
  absl::StatusOr<std::vector<InstalledLoop>> Rehearse(const std::vector<LoopToInject>& loops);
  absl::Status Uninstall();

 private:
  absl::Status Map(size_t first_cache);
  absl::Status FillCaches(size_t first_cache);
  absl::Status InstallPrepared();
  absl::Status AddPrepared(FirstNew first);
  void RemoveNew(FirstNew first, size_t noted);
  void Forget();
  void ForgetPlans();
  void ForgetCaches(FirstNew first);
  std::vector<InstalledLoop> Installed(size_t first_site) const;

  InjectedRank& rank_;
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_INSTALL_INSTALLER_H_
