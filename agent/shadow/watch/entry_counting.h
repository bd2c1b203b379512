// agent/shadow/watch/entry_counting.h - which threads of a rank enter a loop, and how often. Nothing is forked.
//
// Shape    the site counts slow entries for a while; the price of each is taken off and charged.
// Errors   those of LiveRegion; as RankHold::MayAlter when nobody had the time to come.
// Units    ns.
#ifndef AGENT_SHADOW_WATCH_ENTRY_COUNTING_H_
#define AGENT_SHADOW_WATCH_ENTRY_COUNTING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "agent/shadow/rank/injected_rank.h"
#include "agent/shadow/rank_injector.h"

namespace perfd::agent {

// For at most `ns`, less when enough was seen. The site has its jump in the text.
absl::StatusOr<EntryCount> CountEntries(InjectedRank& rank, const PatchSite& site, int64_t ns);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_WATCH_ENTRY_COUNTING_H_
