// agent/shadow/install/loop_layout.h - where new loops and their copies will stand in a rank, and their bytes. The rank is only read.
//
// Shape    Prepare refuses what does not fit, reserves addresses within reach, builds the caches; all of it goes into rank.code.
//          RecordSites then writes the journal's view of it.
// Errors   kFailedPrecondition: no room within reach, or in its limits; those of /proc. Single loops are refused by their status.
// Units    bytes, run-time addresses.
#ifndef AGENT_SHADOW_INSTALL_LOOP_LAYOUT_H_
#define AGENT_SHADOW_INSTALL_LOOP_LAYOUT_H_

#include <vector>

#include "absl/status/status.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/rank/injected_rank.h"
#include "agent/shadow/rank_injector.h"

namespace perfd::agent {

class LoopLayout {
 public:
  // Both must live longer.
  LoopLayout(InjectedRank& rank, const std::vector<LoopToInject>& loops);

  absl::Status Prepare();

 private:
  absl::Status RefuseUnfit();
  absl::Status Reserve();
  absl::Status Build();
  PatchSite& SiteOf(size_t loop) { return rank_.code.sites[first_.site + loop]; }
  std::vector<const LoopToInject*> Within(const Reach& reach);
  uint64_t NewBytes() const;

  InjectedRank& rank_;
  const std::vector<LoopToInject>& loops_;
  const FirstNew first_;
};

// What the journal needs. Sites that were refused when built keep their index; nothing is written for them.
void RecordSites(size_t first_site, InjectedCode* code);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_INSTALL_LOOP_LAYOUT_H_
