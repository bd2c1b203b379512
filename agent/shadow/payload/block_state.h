// agent/shadow/payload/block_state.h - the payload's own part of a thread block, as a shadow uses it.
//
// Shape    begins kBlockPayload bytes into the block; in a shadow GS base is the address of the block.
// Source   agent/variant/thread_block.h; offsets.h repeats the offsets for the assembly.
#ifndef AGENT_SHADOW_PAYLOAD_BLOCK_STATE_H_
#define AGENT_SHADOW_PAYLOAD_BLOCK_STATE_H_

#include <cstddef>
#include <cstdint>

#include "agent/shadow/payload/offsets.h"
#include "agent/shadow/protocol.h"
#include "agent/shadow/shadow_plan.h"

namespace perfd::agent {

struct EvictBuffer {
  uint64_t address;
  uint64_t bytes;
};

// Of runs that go on from each other.
struct Succession {
  SavedRegisters
      left;  // with what a copy came to its exit; flags and return_address are not written
  SavedRegisters entry;  // of the loop, as kBlockXsaveEntry
  uint32_t
      goes_on;     // BlockState::registers and the vector state are those of the last run's end ...
  uint32_t moved;  // ... or at least not those of the loop's entry
  uint64_t ahead;  // address of what the first traced run told (ahead.cc); 0: nothing yet
};

// Of the plan.
struct Progress {
  uint32_t next_run;
  uint32_t arrived;  // came to the loop by itself, and no kRunNatural has been made since
  uint32_t faulted;  // the run under way, or the last one
  uint32_t warm;     // no arrival passes any more
};

struct BlockState {
  uint64_t self;           // address of the block
  uint64_t stack_pointer;  // of the payload, while a copy runs
  uint64_t target;         // copy to run
  uint64_t start;          // ticks
  uint64_t end;
  uint32_t end_cpu;  // node << 12 | cpu (CurrentCpu)
  uint32_t in_run;
  uint64_t xsave_mask;
  uint64_t region;
  SavedRegisters registers;
  Succession succession;
  Progress progress;
  uint32_t index;  // place in the team
  uint32_t team;
  uint32_t mxcsr;  // the thread's own, exceptions masked
  uint64_t fs_base;
  EvictBuffer evict;
  // In recovery mode.
  uint64_t began;  // ticks
  uint64_t site;
  uint64_t record;
  RunEntry run;
  uint64_t distance;
  uint32_t slot;  // of the result
  uint32_t turn;
  uint32_t own_mxcsr;
  uint32_t own_control;  // FCW
  uint32_t generation;
};

// Behind it: what the leader keeps from the fork that it makes. Shadows read it, too, and write nothing there.
inline constexpr uint32_t kBlockLeftOut = kBlockPayload + 0x3c0;
struct TrimmedOut {
  uint32_t count;
  uint32_t reserved;
  TrimRange ranges[kMaxTrims];
};

// Behind both: what outlasts single entries and is not touched by shadows.
inline constexpr uint32_t kBlockStrata = kBlockPayload + 0x800;

static_assert(kBlockPayload + offsetof(BlockState, self) == BLOCK_SELF);
static_assert(kBlockPayload + offsetof(BlockState, stack_pointer) == BLOCK_STACK_POINTER);
static_assert(kBlockPayload + offsetof(BlockState, target) == BLOCK_TARGET);
static_assert(kBlockPayload + offsetof(BlockState, start) == BLOCK_START);
static_assert(kBlockPayload + offsetof(BlockState, end) == BLOCK_END);
static_assert(kBlockPayload + offsetof(BlockState, end_cpu) == BLOCK_END_CPU);
static_assert(kBlockPayload + offsetof(BlockState, xsave_mask) == BLOCK_XSAVE_MASK);
static_assert(kBlockPayload + offsetof(BlockState, registers) == BLOCK_REGISTERS);
static_assert(kBlockPayload + offsetof(BlockState, succession) + offsetof(Succession, left) ==
              BLOCK_LEFT);
static_assert(kBlockXsave == BLOCK_XSAVE && sizeof(BlockState) <= kBlockLeftOut - kBlockPayload);
static_assert(kBlockLeftOut + sizeof(TrimmedOut) <= kBlockStrata);
static_assert(kBlockStrata + sizeof(Strata) <= kBlockPayload + kBlockPayloadBytes);
static_assert(kBlockStack + kBlockStackBytes == BLOCK_STACK_TOP);
static_assert(offsetof(SavedRegisters, rcx) == 16 * 8 && offsetof(SavedRegisters, rsp) == 17 * 8);

// The upper half of a block's stack is for the payload, the lower half for the handler of faults.
inline constexpr uint32_t kAltStackBytes = kBlockStackBytes / 2;

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_PAYLOAD_BLOCK_STATE_H_
