// Source: the words of perf 6.1 (`perf script -F data_src`, `perf mem report`) for the values of recordings.
#include "core/model/memory/memory_access.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

namespace perfd {
namespace {

struct Recorded {
  uint64_t data_src;
  MemoryLevel level;
  TlbResult tlb;
  LockState lock;
};

TEST(DecodeSource, ValuesOfALoadLatencyRecording) {
  for (const Recorded& r : {
           Recorded{0x11868100242, MemoryLevel::kFillBuffer, TlbResult::kHit,
                    LockState::kNotLocked},
           Recorded{0x10668100842, MemoryLevel::kL3, TlbResult::kHit, LockState::kNotLocked},
           Recorded{0x10268100142, MemoryLevel::kL1, TlbResult::kHit, LockState::kNotLocked},
           Recorded{0x1026a100142, MemoryLevel::kL1, TlbResult::kHit, LockState::kLocked},
           Recorded{0x10468100442, MemoryLevel::kL2, TlbResult::kHit, LockState::kNotLocked},
           Recorded{0x10650100842, MemoryLevel::kL3, TlbResult::kWalk, LockState::kNotLocked},
           Recorded{0x68100142, MemoryLevel::kL1, TlbResult::kHit, LockState::kNotLocked},
       }) {
    const MemorySource s = DecodeSource(r.data_src);
    EXPECT_EQ(s.operation, MemoryOperation::kLoad) << std::hex << r.data_src;
    EXPECT_EQ(s.level, r.level) << std::hex << r.data_src;
    EXPECT_FALSE(s.missed) << std::hex << r.data_src;
    EXPECT_EQ(s.tlb, r.tlb) << std::hex << r.data_src;
    EXPECT_EQ(s.lock, r.lock) << std::hex << r.data_src;
    EXPECT_EQ(s.snoop, SnoopResult::kNone) << std::hex << r.data_src;
  }
}

TEST(DecodeSource, NotAvailableIsUnknown) {
  for (const uint64_t data_src : {uint64_t{0}, uint64_t{0x5080021}, uint64_t{0x1e05080021}}) {
    EXPECT_EQ(DecodeSource(data_src), MemorySource{}) << std::hex << data_src;
  }
}

TEST(DecodeSource, BeyondOneNode) {
  const uint64_t load_hit = PERF_MEM_S(OP, LOAD) | PERF_MEM_S(LVL, HIT);
  EXPECT_EQ(DecodeSource(load_hit | PERF_MEM_S(LVL, REM_RAM1)).level, MemoryLevel::kRemoteDram);
  EXPECT_EQ(DecodeSource(load_hit | PERF_MEM_S(LVL, LOC_RAM)).level, MemoryLevel::kLocalDram);
  const MemorySource hitm =
      DecodeSource(load_hit | PERF_MEM_S(LVL, REM_CCE1) | PERF_MEM_S(SNOOP, HITM));
  EXPECT_EQ(hitm.level, MemoryLevel::kRemoteCache);
  EXPECT_EQ(hitm.snoop, SnoopResult::kHitModified);
  // By number and distance alone, as newer kernels may.
  const uint64_t ram = PERF_MEM_S(OP, LOAD) | PERF_MEM_S(LVLNUM, RAM);
  EXPECT_EQ(DecodeSource(ram).level, MemoryLevel::kDram);
  EXPECT_EQ(DecodeSource(ram | PERF_MEM_S(REMOTE, REMOTE)).level, MemoryLevel::kRemoteDram);
  const uint64_t cache =
      PERF_MEM_S(OP, LOAD) | PERF_MEM_S(LVLNUM, ANY_CACHE) | PERF_MEM_S(REMOTE, REMOTE);
  EXPECT_EQ(DecodeSource(cache | PERF_MEM_S(HOPS, 0)).level, MemoryLevel::kOtherCache);
  EXPECT_EQ(DecodeSource(cache | PERF_MEM_S(HOPS, 2)).level, MemoryLevel::kRemoteCache);
  EXPECT_EQ(DecodeSource(cache | PERF_MEM_S(LVL, REM_CCE1) | PERF_MEM_S(HOPS, 0)).level,
            MemoryLevel::kOtherCache)
      << "another core complex of the same node";
}

TEST(DecodeSource, AMissNamesWhatItMissed) {
  const MemorySource store =
      DecodeSource(PERF_MEM_S(OP, STORE) | PERF_MEM_S(LVL, L1) | PERF_MEM_S(LVL, MISS));
  EXPECT_EQ(store.operation, MemoryOperation::kStore);
  EXPECT_EQ(store.level, MemoryLevel::kL1);
  EXPECT_TRUE(store.missed);
  EXPECT_FALSE(DecodeSource(PERF_MEM_S(OP, STORE) | PERF_MEM_S(LVL, MISS)).missed)
      << "of nothing that is named";
}

// Arrow Lake names the buffer of misses of its L2: the data are on their way there.
TEST(DecodeSource, TheMissHandlingBufferIsAMissOfL2) {
  const MemorySource s = DecodeSource(PERF_MEM_S(OP, LOAD) | PERF_MEM_S(LVL, HIT) |
                                      uint64_t{5} << PERF_MEM_LVLNUM_SHIFT);
  EXPECT_EQ(s.level, MemoryLevel::kL2);
  EXPECT_TRUE(s.missed);
}

TEST(DecodeSource, WhatContradictsItselfIsUnknown) {
  EXPECT_EQ(DecodeSource(PERF_MEM_S(OP, LOAD) | PERF_MEM_S(OP, STORE)).operation,
            MemoryOperation::kUnknown);
  EXPECT_EQ(
      DecodeSource(PERF_MEM_S(LVL, L2) | PERF_MEM_S(LVL, LOC_RAM) | PERF_MEM_S(LVL, HIT)).level,
      MemoryLevel::kUnknown);
  EXPECT_EQ(DecodeSource(PERF_MEM_S(TLB, MISS) | PERF_MEM_S(TLB, L1)).tlb, TlbResult::kUnknown)
      << "a miss of the first level may be a hit of the second";
  EXPECT_EQ(DecodeSource(PERF_MEM_S(TLB, HIT) | PERF_MEM_S(TLB, WK)).tlb, TlbResult::kWalk);
  EXPECT_EQ(DecodeSource(PERF_MEM_S(TLB, HIT) | PERF_MEM_S(TLB, L2)).tlb, TlbResult::kSecondLevel);
}

}  // namespace
}  // namespace perfd
