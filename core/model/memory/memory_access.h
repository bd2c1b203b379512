// core/model/memory/memory_access.h - one access to memory as a processor sampled it: address, latency, and who delivered.
//
// Shape    DecodeSource(data_src) -> MemorySource; pure.
// Units    latencies in cycles of the core; addresses of the process.
// Rules    a field that is there is not yet a value: what the kernel calls "not available" is kUnknown here, and so is a
//          combination of bits that names more than one level.
// Source   include/uapi/linux/perf_event.h, union perf_mem_data_src and PERF_MEM_*; older kernels fill mem_lvl alone, newer ones
//          mem_lvl_num, mem_remote and mem_hops as well.
#ifndef CORE_MODEL_MEMORY_MEMORY_ACCESS_H_
#define CORE_MODEL_MEMORY_MEMORY_ACCESS_H_

#include <cstdint>

#include "core/base/address.h"

namespace perfd {

enum class MemoryOperation : uint8_t { kUnknown, kLoad, kStore, kPrefetch, kExecute };

// Where the data were, or, of a miss, where they were not.
enum class MemoryLevel : uint8_t {
  kUnknown,
  kL1,
  kFillBuffer,  // on their way into L1 already
  kL2,
  kL3,
  kL4,
  kOtherCache,   // of another core, at a distance that is not told
  kRemoteCache,  // of another node
  kLocalDram,
  kRemoteDram,
  kDram,  // of a node that is not told
  kPersistent,
  kCxl,
  kIo,
  kUncached,
};
inline constexpr int kMemoryLevels = 15;

enum class SnoopResult : uint8_t {
  kUnknown,
  kNone,
  kHit,
  kMiss,
  kHitModified,
  kForwarded,
  kFromPeer
};

enum class TlbResult : uint8_t {
  kUnknown,
  kHit,  // in one of its levels
  kFirstLevel,
  kSecondLevel,
  kWalk,
  kFault,  // the kernel had to
};

enum class LockState : uint8_t { kUnknown, kNotLocked, kLocked };

struct MemorySource {
  MemoryOperation operation = MemoryOperation::kUnknown;
  MemoryLevel level = MemoryLevel::kUnknown;
  bool missed = false;  // not in `level`: all that is known is that it came from beyond
  SnoopResult snoop = SnoopResult::kUnknown;
  TlbResult tlb = TlbResult::kUnknown;
  LockState lock = LockState::kUnknown;
  bool data_blocked = false;     // a store before it could not forward what it wrote
  bool address_blocked = false;  // its address met one that is alike in the low bits

  bool operator==(const MemorySource&) const = default;
};

struct MemoryAccess {
  RuntimeAddress address = 0;        // 0: not recorded
  uint64_t latency_cycles = 0;       // 0: not recorded
  uint16_t instruction_latency = 0;  // of the whole instruction; 0: not recorded
  uint64_t page_bytes = 0;           // 0: not recorded
  MemorySource source{};

  bool operator==(const MemoryAccess&) const = default;
};

MemorySource DecodeSource(uint64_t data_src);

}  // namespace perfd

#endif  // CORE_MODEL_MEMORY_MEMORY_ACCESS_H_
