// A shadow that goes on: between two runs its threads execute the program's own code, with its own barriers, from the loop's exit to
// where they come to the loop again. There the caches hold what the program has left in them, which no repetition in place can
// bring about. The instance that was run changed is run once more as it is, so that what it wrote is right again.
// What the code between asks of the kernel is the filter's to judge (filter.cc); a stretch has a bound of its own.
#include "agent/shadow/payload/payload.h"

namespace perfd::agent {
namespace {

uint64_t LeftNs(const ChildControl* child) {
  const uint64_t now = MonotonicNs();
  return child->deadline_ns > now ? child->deadline_ns - now : 0;
}

uint64_t OwnBlock() {
  uint64_t block;
  asm volatile("mov %%gs:%c1, %0" : "=r"(block) : "i"(BLOCK_SELF));
  return block;
}

}  // namespace

// The part of the region that the rank and the agent write becomes the shadow's own, as it is now. Nobody else sees what it
// writes there from here on: that it is to be told of arrivals, and of no other loop.
void TakeControl(RegionHeader* region, ChildControl* child, ShadowPlan* plan) {
  const uint64_t bytes = ChildOffset(BlockCount(region));
  const uint64_t copy = MapBuffer(child, bytes);
  CopyBytes(copy, AddressOf(region), bytes);
  constexpr uint64_t kMayMoveFixed = 3;
  const int64_t moved = SysCall(kSysMremap, copy, bytes, bytes, kMayMoveFixed, AddressOf(region));
  if (moved < 0 && moved > -4096) FailShadow(child, kStepProtect, moved);
  for (uint32_t i = 0; i < kMaxSites; ++i) SiteOf(region, i)->mode = kModeIdle;
  SiteOf(region, plan->site)->mode = kModeArrival;
}

// The instance of the last arrival, unchanged, and on through what follows it.
void GoOn(RegionHeader* region, ChildControl* child, BlockState* state, uint64_t block) {
  const ShadowPlan* plan = PlanOf(region);
  state->progress.arrived = 0;
  if (state->index == 0) {
    child->orders.stretches.left_ticks = Ticks();
    const uint64_t left = LeftNs(child), most = plan->tables.stretch_ns;
    StartWatchdog(most < left ? most : left);
  }
  state->target = SiteOf(region, plan->site)->live_copy;
  payload_run(block);
  __builtin_trap();  // whoever leaves the live copy does not come back here
}

// What payload_enter returns of it. As in the rank: nothing of the thread's own state changes.
uint64_t Arrive(RegionHeader* region, SavedRegisters* frame) {
  const uint64_t block = OwnBlock();
  BlockState* state = StateOf(block);
  constexpr uint64_t kPushed = 17 * 8, kRedZone = 128, kTrapFlag = 0x100;
  CopyBytes(AddressOf(&state->registers), AddressOf(frame), kPushed);
  state->registers.rsp = AddressOf(frame) + kPushed + kRedZone;
  state->registers.flags &= ~kTrapFlag;
  ZeroBytes(block + kBlockXsave + 512, 64);  // meet.cc, SaveState
  const uint64_t mask = region->xsave_mask;
  asm volatile("xsave64 (%0)" ::"r"(block + kBlockXsave), "a"(static_cast<uint32_t>(mask)),
               "d"(static_cast<uint32_t>(mask >> 32))
               : "memory");
  return block | kArriveTag;
}

bool IsLate(const ShadowPlan* plan, ChildControl* child) {
  const uint64_t now = Ticks(), stretch = now - child->orders.stretches.left_ticks;
  if (stretch > child->orders.stretches.longest_ticks)
    child->orders.stretches.longest_ticks = stretch;
  StartWatchdog(LeftNs(child));
  return now - child->begin_tsc + child->orders.stretches.longest_ticks > plan->soft_ticks;
}

extern "C" void payload_arrive(uint64_t block) {
  BlockState* state = StateOf(block);
  auto* region = At<RegionHeader>(state->region);
  MaskExceptions(state, block);
  state->progress.arrived = 1;
  RunOn(region, ChildOf(region), state, block);
}

}  // namespace perfd::agent
