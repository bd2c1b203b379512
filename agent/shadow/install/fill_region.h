// agent/shadow/install/fill_region.h - what the payload must find in the shared region: its header, a Site per loop, pairs of addresses.
//
// Errors   those of Memory; of /proc; kUnimplemented: this CPU's state cannot be saved.
// Source   agent/shadow/protocol.h, agent/shadow/region_layout.h.
#ifndef AGENT_SHADOW_INSTALL_FILL_REGION_H_
#define AGENT_SHADOW_INSTALL_FILL_REGION_H_

#include <cstddef>

#include "absl/status/status.h"
#include "agent/shadow/rank/injected_rank.h"

namespace perfd::agent {

// A region that is mapped and has the rank's own rights, nothing else yet. The doorbell can be heard afterwards.
absl::Status FillRegion(InjectedRank& rank);
// Into a region that is in use: the words that threads of the rank write are left alone.
absl::Status AddSites(InjectedRank& rank, size_t first_site);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_INSTALL_FILL_REGION_H_
