// agent/shadow/region_doorbell.h - sleeps until the payload says that something has happened in the region, instead of looking.
//
// Shape    Count(), look at what is waited for, then Await(what it was): nothing is missed in between.
//          The page is mapped read-only and only named to futex(2), never read: a rank can take it away.
// Errors   Count: those of Memory. Await: none; a doorbell that cannot be heard (the kernel lets only CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN open the file of a
//          mapping) says so, and Await sleeps for the whole time.
// Units    ns.
// Threads  thread-safe (const).
// Source   proc(5), /proc/PID/map_files; futex(2): a shared word is one word in every address space.
#ifndef AGENT_SHADOW_REGION_DOORBELL_H_
#define AGENT_SHADOW_REGION_DOORBELL_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "agent/attach/memory.h"

namespace perfd::agent {

class RegionDoorbell {
 public:
  // region: address of the RegionHeader in that process, mapped by now. The memory must live longer.
  RegionDoorbell(const Memory* memory, uint64_t region);
  ~RegionDoorbell();
  RegionDoorbell(const RegionDoorbell&) = delete;
  RegionDoorbell& operator=(const RegionDoorbell&) = delete;

  bool can_wait() const { return page_ != nullptr; }
  absl::StatusOr<uint32_t> Count() const;
  // At most so long; less when the doorbell is not at `seen`, or rings.
  void Await(uint32_t seen, int64_t ns) const;

 private:
  const Memory* memory_;
  uint64_t region_;
  void* page_ = nullptr;
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_REGION_DOORBELL_H_
