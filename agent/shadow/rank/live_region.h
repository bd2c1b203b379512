// agent/shadow/rank/live_region.h - the shared region while the agent and the payload talk through it: heart beat, modes, who is inside.
//
// Shape    RegionAccess from the plan on; OpenDoorbell once it is mapped. Whoever waits calls BeatIfDue: a payload without an
//          agent passes through.
// Errors   those of Memory; kFailedPrecondition: somebody has taken the region out meanwhile.
// Threads  thread-compatible.
#ifndef AGENT_SHADOW_RANK_LIVE_REGION_H_
#define AGENT_SHADOW_RANK_LIVE_REGION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/shadow/region_access.h"
#include "agent/shadow/region_doorbell.h"

namespace perfd::agent {

class LiveRegion : public RegionAccess {
 public:
  using RegionAccess::RegionAccess;

  void OpenDoorbell() { doorbell_.emplace(&memory(), address()); }
  void CloseDoorbell() { doorbell_.reset(); }
  // Between these two.
  const RegionDoorbell& doorbell() const { return *doorbell_; }

  absl::Status IsThere() const;
  absl::Status Beat();
  absl::Status BeatIfDue();
  // site: its number.
  absl::Status SetMode(uint32_t site, uint32_t mode) const;
  // A shadow that is not over yet.
  absl::StatusOr<bool> IsBusy() const;
  // Threads of the rank that may still read the plan.
  absl::StatusOr<uint32_t> InSitu() const;
  absl::StatusOr<std::vector<ThreadRecord>> Records() const;
  absl::Status ForgetEndedThreads(int32_t pid) const;

 private:
  std::optional<RegionDoorbell> doorbell_;
  int64_t beat_ns_ = 0;
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RANK_LIVE_REGION_H_
