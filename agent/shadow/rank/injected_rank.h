// agent/shadow/rank/injected_rank.h - a rank that holds our code: who it is, what is in it, what it has paid.
//
// Shape    state only. install/ changes `code` and `region`, run/ arms its sites; injector/ is the face. One region, up to
//          kMaxCaches code caches, one site per accepted loop.
// Threads  thread-compatible; `addresses` is thread-safe.
#ifndef AGENT_SHADOW_RANK_INJECTED_RANK_H_
#define AGENT_SHADOW_RANK_INJECTED_RANK_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "agent/attach/memory.h"
#include "agent/shadow/rank/copied_addresses.h"
#include "agent/shadow/rank/injected_code.h"
#include "agent/shadow/rank/live_region.h"
#include "agent/shadow/rank/rank_hold.h"
#include "agent/shadow/rank_injector.h"
#include "agent/shadow/timing/tick_clock.h"
#include "core/model/identity.h"
#include "core/model/loop_measurement.h"

namespace perfd::agent {

// It stays where it was made: its parts point to each other.
struct InjectedRank {
  InjectedRank(const RankInfo& rank, InjectorOptions injector_options, Memory rank_memory);
  InjectedRank(const InjectedRank&) = delete;
  InjectedRank& operator=(const InjectedRank&) = delete;

  // kInvalidArgument: no such loop; the loop's own status, when it was refused; kFailedPrecondition: nothing is installed.
  absl::StatusOr<PatchSite*> SiteOf(int32_t loop);
  // Of a loop that may be armed now. kUnavailable: its jump is not in the text; or as RankHold::MayAlter.
  absl::StatusOr<PatchSite*> PatchedSiteOf(int32_t loop);

  const RankInfo info;
  const InjectorOptions options;
  const Memory memory;
  const TickClock ticks;
  InjectionCost cost;
  RankHold hold;
  InjectedCode code;
  std::optional<LiveRegion> region;  // once it is laid out
  CopiedAddresses addresses;
  uint32_t generation = 0;  // of the last plan
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RANK_INJECTED_RANK_H_
