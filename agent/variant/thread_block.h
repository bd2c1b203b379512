// agent/variant/thread_block.h - the memory of one thread that changed copies of a loop may touch, addressed through GS.
//
// Shape    offsets into a block of kThreadBlockBytes, 4096-byte aligned; plain C++ without any library, because the code that
//          lives in the rank includes it too. In a shadow GS base is the address of the running thread's block.
//          Programs that use GS themselves are refused.
// Units    bytes.
// Source   our own layout; changing it means raising kShadowLayoutVersion (agent/shadow/protocol.h).
#ifndef AGENT_VARIANT_THREAD_BLOCK_H_
#define AGENT_VARIANT_THREAD_BLOCK_H_

#include <cstdint>

namespace perfd::agent {

inline constexpr uint32_t kThreadBlockBytes = 0x20000;

// Written by COUNT and TRACE copies.
inline constexpr uint32_t kBlockIterations = 0x000;  // u64: passes through the header
inline constexpr uint32_t kBlockIterationLimit =
    0x008;  // u64: a capped copy leaves through its exit when it gets there
inline constexpr uint32_t kBlockScratch =
    0x010;  // u64[3]: free for a copy, not preserved between copies
// i64: how many more instances a batch may begin (batch.h); negative when it left because there were enough.
inline constexpr uint32_t kBlockInstancesLeft = 0x028;
// u64: of TRACE, a digest of the way through the loop's blocks. Begins at 0.
inline constexpr uint32_t kBlockPath = 0x030;
// u64: 1 when a copy that counts left, in its last run, through a path that was left out (flow/excluded_path.h). Written only by copies
// of loops that have such paths.
inline constexpr uint32_t kBlockExcludedPath = 0x038;

// Used by the code around the copies.
inline constexpr uint32_t kBlockPayload = 0x040;
inline constexpr uint32_t kBlockPayloadBytes = 0xfc0;

// One slot for each memory operand that DL1 pins: a line and its neighbour, so that no two slots share a pair.
inline constexpr uint32_t kBlockSlots = 0x1000;
inline constexpr uint32_t kSlotBytes = 128;
inline constexpr uint32_t kSlotCount = 64;

// Operands of controlled divisions and square roots: 64 bytes of equal lanes each, full mantissas, no early-out quotients. In
// sets of the first level that only the 29th to 32nd slot use: a Zen 4 finds ways by a hash of addresses, and where lines of one
// set agree in it they throw each other out: 3 to 7 of 100 random addresses of a block take 1.2 to 1.6 times as long
// (docs/benchmarks/constants.md#kblockcontrol).
inline constexpr uint32_t kBlockControl = 0x3e00;
inline constexpr uint32_t kControlDividendF64 = kBlockControl + 0x00;
inline constexpr uint32_t kControlDivisorF64 = kBlockControl + 0x40;
inline constexpr uint32_t kControlDividendF32 = kBlockControl + 0x80;
inline constexpr uint32_t kControlDivisorF32 = kBlockControl + 0xc0;

// Of counted chains. u64: kBlockInstancesLeft when the loop was last entered; how often it was (turns of the loop around may
// pass it by).
inline constexpr uint32_t kBlockInstanceSeen = 0x3f00;
inline constexpr uint32_t kBlockInstancesEntered = 0x3f08;

// u64: kBlockPath of the loop itself, as kBlockTraceBaseline.
inline constexpr uint32_t kBlockPathBaseline = 0x3f10;

// u64: passes through the headers of all loops inside the loop. Written by copies that count, where there are such loops.
inline constexpr uint32_t kBlockInnerPasses = 0x3f18;

// Where TRACE spills the indices of a gather or scatter, and its mask: 64 bytes each.
inline constexpr uint32_t kBlockIndices = 0x3f40;
inline constexpr uint32_t kBlockLaneMask = 0x3f80;

// What TRACE writes for each reference: the lowest and highest address seen, the first one, accesses counted, the sum of all
// addresses modulo 2^64.
inline constexpr uint32_t kBlockTrace = 0x4000;
struct TraceRecord {
  uint64_t lowest;   // starts at ~0
  uint64_t highest;  // of the first byte of an access; starts at 0
  uint64_t first;
  uint64_t count;
  uint64_t sum = 0;
};
inline constexpr uint32_t kTraceCount = 1024;

// One u64 per reference: what the loop itself accessed there, as traces of its variants are held against it (TraceDigest).
inline constexpr uint32_t kBlockTraceBaseline = 0xe000;

// Saved vector state, and a stack for the code around the copies.
inline constexpr uint32_t kBlockXsave = 0x10000;
inline constexpr uint32_t kBlockXsaveBytes = 0x2000;
// The vector state of the thread at the loop's entry, while runs that go on from each other change the one above.
inline constexpr uint32_t kBlockXsaveEntry = kBlockXsave + kBlockXsaveBytes;
inline constexpr uint32_t kBlockStack = 0x14000;
inline constexpr uint32_t kBlockStackBytes = 0xc000;

// Differs where accesses do: in how many there are, where the first one, the lowest and the highest are, or in their sum.
constexpr uint64_t TraceDigest(const TraceRecord& record) {
  const uint64_t parts[] = {record.lowest, record.highest, record.first, record.count, record.sum};
  uint64_t digest = 0;
  // Source: Knuth, The Art of Computer Programming 3, 6.4 (multiplicative hashing): 2^64 over the golden ratio.
  for (const uint64_t part : parts) digest = (digest ^ part) * 0x9e3779b97f4a7c15u + (digest >> 29);
  return digest;
}

static_assert(kBlockSlots + kSlotBytes * kSlotCount <= kBlockControl);
static_assert(kControlDivisorF32 + 0x40 <= kBlockInstanceSeen);
static_assert(kBlockPathBaseline + 8 <= kBlockInnerPasses &&
              kBlockInnerPasses + 8 <= kBlockIndices);
static_assert(kBlockLaneMask + 64 <= kBlockTrace);
static_assert(kBlockTrace + sizeof(TraceRecord) * kTraceCount <= kBlockTraceBaseline);
static_assert(kBlockTraceBaseline + sizeof(uint64_t) * kTraceCount <= kBlockXsave);
static_assert(kBlockXsaveEntry + kBlockXsaveBytes <= kBlockStack);
static_assert(kBlockStack + kBlockStackBytes <= kThreadBlockBytes);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_THREAD_BLOCK_H_
