#include "core/model/memory/memory_access.h"

#include <linux/perf_event.h>

#include <array>

namespace perfd {
namespace {

// `width` bits from `shift` on.
uint64_t Field(uint64_t data_src, int shift, int width) {
  return data_src >> shift & ((uint64_t{1} << width) - 1);
}

// Newer than the headers of older systems.
constexpr uint64_t kNumberCxl = 0x9;
constexpr uint64_t kNumberIo = 0xa;
constexpr uint64_t kNumberUncached = 0x8;
constexpr uint64_t kNumberMissHandlingBuffer = 0x5;
constexpr uint64_t kNumberMemorySideCache = 0x6;
constexpr uint64_t kNumberL0 = 0x7;
constexpr uint64_t kPeer = 0x2;

template <typename T>
struct Bit {
  uint64_t bit;
  T meaning;
};

// What the one bit among `bits` that is in the table means; with none, or more than one, nothing.
template <typename T, size_t N>
T OnlyOne(uint64_t bits, const std::array<Bit<T>, N>& table) {
  T found{};
  for (const Bit<T>& row : table) {
    if ((bits & row.bit) == 0) continue;
    if (found != T{}) return T{};
    found = row.meaning;
  }
  return found;
}

constexpr std::array<Bit<MemoryOperation>, 4> kOperations = {{
    {PERF_MEM_OP_LOAD, MemoryOperation::kLoad},
    {PERF_MEM_OP_STORE, MemoryOperation::kStore},
    {PERF_MEM_OP_PFETCH, MemoryOperation::kPrefetch},
    {PERF_MEM_OP_EXEC, MemoryOperation::kExecute},
}};

constexpr std::array<Bit<MemoryLevel>, 9> kLevels = {{
    {PERF_MEM_LVL_L1, MemoryLevel::kL1},
    {PERF_MEM_LVL_LFB, MemoryLevel::kFillBuffer},
    {PERF_MEM_LVL_L2, MemoryLevel::kL2},
    {PERF_MEM_LVL_L3, MemoryLevel::kL3},
    {PERF_MEM_LVL_LOC_RAM, MemoryLevel::kLocalDram},
    {PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_REM_RAM2, MemoryLevel::kRemoteDram},
    {PERF_MEM_LVL_REM_CCE1 | PERF_MEM_LVL_REM_CCE2, MemoryLevel::kRemoteCache},
    {PERF_MEM_LVL_IO, MemoryLevel::kIo},
    {PERF_MEM_LVL_UNC, MemoryLevel::kUncached},
}};

constexpr std::array<Bit<SnoopResult>, 4> kSnoops = {{
    {PERF_MEM_SNOOP_NONE, SnoopResult::kNone},
    {PERF_MEM_SNOOP_HIT, SnoopResult::kHit},
    {PERF_MEM_SNOOP_MISS, SnoopResult::kMiss},
    {PERF_MEM_SNOOP_HITM, SnoopResult::kHitModified},
}};

// By the number that newer kernels give, with the distance that they tell beside it.
MemoryLevel LevelByNumber(uint64_t number, bool remote, uint64_t hops) {
  const bool other_node = hops > PERF_MEM_HOPS_0 || (remote && hops == 0);
  switch (number) {
    case PERF_MEM_LVLNUM_L1:
      return remote ? MemoryLevel::kOtherCache : MemoryLevel::kL1;
    case PERF_MEM_LVLNUM_LFB:
      return MemoryLevel::kFillBuffer;
    case kNumberL0:
      return MemoryLevel::kL1;
    case kNumberMemorySideCache:
      return MemoryLevel::kL4;
    case kNumberMissHandlingBuffer:  // on its way into L2: a miss of it (DecodeLevel)
    case PERF_MEM_LVLNUM_L2:
      if (other_node) return MemoryLevel::kRemoteCache;
      return remote ? MemoryLevel::kOtherCache : MemoryLevel::kL2;
    case PERF_MEM_LVLNUM_L3:
      return other_node ? MemoryLevel::kRemoteCache : MemoryLevel::kL3;
    case PERF_MEM_LVLNUM_L4:
      return other_node ? MemoryLevel::kRemoteCache : MemoryLevel::kL4;
    case PERF_MEM_LVLNUM_ANY_CACHE:
      return other_node ? MemoryLevel::kRemoteCache : MemoryLevel::kOtherCache;
    case PERF_MEM_LVLNUM_RAM:
      return other_node ? MemoryLevel::kRemoteDram : MemoryLevel::kDram;
    case PERF_MEM_LVLNUM_PMEM:
      return MemoryLevel::kPersistent;
    case kNumberCxl:
      return MemoryLevel::kCxl;
    case kNumberIo:
      return MemoryLevel::kIo;
    case kNumberUncached:
      return MemoryLevel::kUncached;
    default:
      return MemoryLevel::kUnknown;
  }
}

void DecodeLevel(uint64_t data_src, MemorySource* out) {
  const uint64_t bits = Field(data_src, PERF_MEM_LVL_SHIFT, 14);
  out->missed = (bits & PERF_MEM_LVL_MISS) != 0;
  const uint64_t hops = Field(data_src, PERF_MEM_HOPS_SHIFT, 3);
  if ((bits & PERF_MEM_LVL_NA) == 0) out->level = OnlyOne(bits, kLevels);
  if (out->level == MemoryLevel::kRemoteCache && hops == PERF_MEM_HOPS_0)
    out->level = MemoryLevel::kOtherCache;
  if (out->level == MemoryLevel::kUnknown) {
    const uint64_t number = Field(data_src, PERF_MEM_LVLNUM_SHIFT, 4);
    out->level = LevelByNumber(number, Field(data_src, PERF_MEM_REMOTE_SHIFT, 1) != 0, hops);
    out->missed = out->missed || number == kNumberMissHandlingBuffer;
  }
  if (out->level == MemoryLevel::kUnknown) out->missed = false;
}

SnoopResult Snoop(uint64_t data_src) {
  const uint64_t extension = Field(data_src, PERF_MEM_SNOOPX_SHIFT, 2);
  const SnoopResult plain = OnlyOne(Field(data_src, PERF_MEM_SNOOP_SHIFT, 5), kSnoops);
  if (plain == SnoopResult::kHitModified) return plain;
  if ((extension & kPeer) != 0) return SnoopResult::kFromPeer;
  if ((extension & PERF_MEM_SNOOPX_FWD) != 0) return SnoopResult::kForwarded;
  return plain;
}

TlbResult Tlb(uint64_t data_src) {
  const uint64_t bits = Field(data_src, PERF_MEM_TLB_SHIFT, 7);
  if ((bits & PERF_MEM_TLB_NA) != 0) return TlbResult::kUnknown;
  if ((bits & PERF_MEM_TLB_OS) != 0) return TlbResult::kFault;
  // A miss of the second level, and a hit of the walker, are the same walk. A miss of the first alone says nothing of it.
  const bool second_missed = (bits & PERF_MEM_TLB_MISS) != 0 && (bits & PERF_MEM_TLB_L2) != 0;
  const bool walked = (bits & PERF_MEM_TLB_WK) != 0;
  if (second_missed || walked) return TlbResult::kWalk;
  if ((bits & PERF_MEM_TLB_HIT) == 0) return TlbResult::kUnknown;
  switch (bits & (PERF_MEM_TLB_L1 | PERF_MEM_TLB_L2)) {
    case PERF_MEM_TLB_L1:
      return TlbResult::kFirstLevel;
    case PERF_MEM_TLB_L2:
      return TlbResult::kSecondLevel;
    default:
      return TlbResult::kHit;
  }
}

LockState Lock(uint64_t data_src) {
  const uint64_t bits = Field(data_src, PERF_MEM_LOCK_SHIFT, 2);
  if ((bits & PERF_MEM_LOCK_NA) != 0) return LockState::kUnknown;
  return (bits & PERF_MEM_LOCK_LOCKED) != 0 ? LockState::kLocked : LockState::kNotLocked;
}

}  // namespace

MemorySource DecodeSource(uint64_t data_src) {
  MemorySource out;
  if (data_src == 0) return out;
  const uint64_t operation = Field(data_src, PERF_MEM_OP_SHIFT, 5);
  if ((operation & PERF_MEM_OP_NA) == 0) out.operation = OnlyOne(operation, kOperations);
  DecodeLevel(data_src, &out);
  out.snoop = Snoop(data_src);
  out.tlb = Tlb(data_src);
  out.lock = Lock(data_src);
  const uint64_t blocked = Field(data_src, PERF_MEM_BLK_SHIFT, 3);
  out.data_blocked = (blocked & PERF_MEM_BLK_DATA) != 0;
  out.address_blocked = (blocked & PERF_MEM_BLK_ADDR) != 0;
  return out;
}

}  // namespace perfd
