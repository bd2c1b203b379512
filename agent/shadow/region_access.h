// agent/shadow/region_access.h - typed reads and writes of the shared region in a rank, while it runs.
//
// Errors   those of Memory; Header() also kFailedPrecondition: no region of ours at that address.
// Threads  thread-safe (const); words are written whole, in the order of the calls.
#ifndef AGENT_SHADOW_REGION_ACCESS_H_
#define AGENT_SHADOW_REGION_ACCESS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/attach/memory.h"
#include "agent/shadow/protocol.h"
#include "agent/shadow/region_layout.h"
#include "agent/shadow/shadow_plan.h"

namespace perfd::agent {

class RegionAccess {
 public:
  RegionAccess(const Memory* memory, uint64_t address, uint32_t blocks)
      : memory_(memory), address_(address), blocks_(blocks) {}

  uint64_t SiteAddress(uint32_t index) const {
    return address_ + kSitesOffset + index * sizeof(Site);
  }
  uint64_t RecordAddress(uint32_t index) const {
    return address_ + kRecordsOffset + index * sizeof(ThreadRecord);
  }
  uint64_t TurnsAddress(uint32_t site) const {
    return address_ + kTurnsOffset + site * sizeof(LiveTurns);
  }
  uint64_t LiveAddress(uint32_t index) const {
    return address_ + kLiveOffset + index * sizeof(LiveRecord);
  }
  uint64_t PlanAddress() const { return address_ + kPlanOffset; }
  uint64_t MapAddress() const { return address_ + MapOffset(blocks_); }
  uint64_t ChildAddress() const { return address_ + ChildOffset(blocks_); }
  uint64_t ResultsAddress() const { return address_ + ResultsOffset(blocks_); }
  uint64_t BlockAddress(uint32_t index) const { return address_ + BlockOffset(blocks_, index); }
  uint64_t address() const { return address_; }
  uint32_t blocks() const { return blocks_; }

  template <typename T>
  absl::StatusOr<T> Read(uint64_t address) const {
    T value{};
    absl::Status status = memory_->Read(address, {reinterpret_cast<uint8_t*>(&value), sizeof(T)});
    if (!status.ok()) return status;
    return value;
  }
  template <typename T>
  absl::StatusOr<std::vector<T>> ReadMany(uint64_t address, size_t count) const {
    std::vector<T> values(count);
    absl::Status status =
        memory_->Read(address, {reinterpret_cast<uint8_t*>(values.data()), count * sizeof(T)});
    if (!status.ok()) return status;
    return values;
  }
  template <typename T>
  absl::Status Write(uint64_t address, const T& value) const {
    return memory_->Write(address, {reinterpret_cast<const uint8_t*>(&value), sizeof(T)});
  }
  template <typename T>
  absl::Status WriteMany(uint64_t address, const std::vector<T>& values) const {
    return memory_->Write(
        address, {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)});
  }
  const Memory& memory() const { return *memory_; }

 private:
  const Memory* memory_;
  uint64_t address_;
  uint32_t blocks_;
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_REGION_ACCESS_H_
