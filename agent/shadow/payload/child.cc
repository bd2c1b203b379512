// The shadow from its first instruction to the rebuilt team. It opens nothing, closes nothing and writes to no memory that it
// shares with the rank but its own part of the region, and the doorbell before it takes the rest from itself.
#include "agent/shadow/payload/payload.h"

namespace perfd::agent {
namespace {

enum : uint64_t { kPrSetDeathSignal = 1, kPrSetDumpable = 4, kRlimitCore = 4 };

void BeAlone(ChildControl* child) {
  constexpr uint64_t kKill = 9;
  SysCall(kSysPrctl, kPrSetDeathSignal, kKill);
  uint64_t none[2] = {0, 0};
  SysCall(kSysPrlimit, 0, kRlimitCore, AddressOf(none), 0);
  HandleSignals();
  uint64_t now = MonotonicNs(), end = child->deadline_ns;
  StartWatchdog(end > now ? end - now : 0);
}

// No core, not even to a program that collects them; afterwards only root may look into the shadow.
void BeUndumpable() {
  SysCall(kSysPrctl, kPrSetDumpable, 0);
}

// The agent looks at the shadow's own mappings, which nobody changes any more, and completes the list of what to protect.
void WaitForAgent(RegionHeader* region, ChildControl* child, ShadowPlan* plan) {
  if ((plan->flags & kPlanWaitForAgent) == 0) return;
  Store(child->waiting, 1);
  NotifyAgent(region);
  uint64_t deadline = MonotonicNs() + plan->agent_wait_ns;
  while (Load(child->go) == 0) {
    if (MonotonicNs() >= deadline) FailShadow(child, kStepAgent, 0);
    SleepNs(100000);
  }
  Store(child->waiting, 0);
}

void Protect(RegionHeader* region, ChildControl* child, ShadowPlan* plan) {
  uint32_t count = plan->protect_count;
  if (count > kMaxProtects) FailShadow(child, kStepPlan, 0);
  for (uint32_t i = 0; i < count; ++i) {
    const ProtectRange& range = plan->protects[i];
    int64_t error = SysCall(kSysMprotect, range.address, range.bytes, range.protection & 1);
    constexpr int64_t kNotMapped = -12;  // gone since the list was made
    if (error < 0 && error != kNotMapped) FailShadow(child, kStepProtect, error);
  }
  if (plan->flags & kPlanNatural) return TakeControl(region, child, plan);
  constexpr uint64_t kRead = 1;
  int64_t error = SysCall(kSysMprotect, AddressOf(region), ChildOffset(BlockCount(region)), kRead);
  if (error < 0) FailShadow(child, kStepProtect, error);
}

// Copied all at once and before there is a second thread, which each later copy would interrupt. Kernels before 5.14 do not know
// the advice: then pages are copied one by one, when they are written to.
void CopyWritten(ShadowPlan* plan) {
  constexpr uint64_t kPopulateWrite = 23, kPageBytes = 4096;
  const uint64_t count = uint64_t{plan->restore_count} + plan->memory.written_count;
  for (uint64_t i = 0; i < count && i < kMaxRestores; ++i) {
    const RestoreRange& range = plan->restores[i];
    const uint64_t low = range.address & ~(kPageBytes - 1);
    const uint64_t high = (range.address + range.bytes + kPageBytes - 1) & ~(kPageBytes - 1);
    SysCall(kSysMadvise, low, high - low, kPopulateWrite);
  }
}

// A fork leaves each page as if it had not been used for long, and the processor takes hundreds of cycles to note the first use: far more
// than the program needs for it. Populating does not help alone; reading does.
void ReadOnce(ShadowPlan* plan) {
  constexpr uint64_t kPopulateRead = 22, kPageBytes = 4096, kPieceBytes = 512 * kPageBytes,
                     kLongest = 8;
  const uint64_t first = uint64_t{plan->restore_count} + plan->memory.written_count;
  const uint64_t end_ns = MonotonicNs() + plan->shadow_ns / kLongest;
  for (uint64_t i = first; i < first + plan->memory.read_count && i < kMaxRestores; ++i) {
    const RestoreRange& range = plan->restores[i];
    const uint64_t end = range.address + range.bytes;
    uint64_t piece = range.address & ~(kPageBytes - 1);
    for (; piece < end && MonotonicNs() < end_ns; piece += kPieceBytes) {
      const uint64_t left = end - piece < kPieceBytes ? end - piece : kPieceBytes;
      const uint64_t bytes = (left + kPageBytes - 1) & ~(kPageBytes - 1);
      // What may not be read, or is not there, is told so and not by a signal.
      if (SysCall(kSysMadvise, piece, bytes, kPopulateRead) != 0) continue;
      for (uint64_t at = piece; at < piece + bytes; at += kPageBytes) (void)*At<volatile char>(at);
    }
  }
}

// What the runs may change is put aside once; runs that ask for it get it back.
void SaveRestores(ChildControl* child, ShadowPlan* plan) {
  uint32_t count = plan->restore_count;
  if (count > kMaxRestores) FailShadow(child, kStepPlan, 0);
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; ++i) total += plan->restores[i].bytes;
  if (total == 0) return;
  child->buffers.restores = MapBuffer(child, total);
  uint64_t at = child->buffers.restores;
  MapLines(child, plan, total);
  for (uint32_t i = 0; i < count; ++i) {
    CopyBytes(at, plan->restores[i].address, plan->restores[i].bytes);
    at += plan->restores[i].bytes;
  }
}

// Of the run that walks farthest.
uint64_t EvictBytes(ShadowPlan* plan) {
  uint32_t count = plan->run_count < kMaxRuns ? plan->run_count : kMaxRuns;
  uint64_t most = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t bytes =
        plan->memory.evict_bytes[plan->runs[i].flags >> kRunEvictShift & kRunEvictMask];
    if (bytes > most) most = bytes;
  }
  return most;
}

void PrepareBlock(RegionHeader* region, ChildControl* child, uint32_t place) {
  ThreadRecord* record = RecordOf(region, child->records[place]);
  uint64_t block = BlockOf(region, child->records[place]);
  BlockState* state = StateOf(block);
  ZeroBytes(AddressOf(state), sizeof(BlockState));
  state->self = block;
  state->xsave_mask = region->xsave_mask;
  state->region = AddressOf(region);
  state->index = place;
  state->team = child->team;
  state->fs_base = record->fs_base;
  CopyBytes(AddressOf(&state->registers), AddressOf(&record->registers), sizeof(SavedRegisters));
  constexpr uint64_t kTrapFlag = 0x100;
  state->registers.flags &= ~kTrapFlag;
  state->evict.bytes = EvictBytes(PlanOf(region));
  if (state->evict.bytes != 0) state->evict.address = MapBuffer(child, state->evict.bytes);
}

// What allocates without end is told that there is no more, before the node runs out of it.
void BoundMemory(ChildControl* child, ShadowPlan* plan) {
  constexpr uint64_t kRlimitAddressSpace = 9;
  if (plan->memory.mapped_bytes == 0) return;
  uint64_t now[2] = {0, 0};
  SysCall(kSysPrlimit, 0, kRlimitAddressSpace, 0, AddressOf(now));
  const uint64_t most = plan->memory.mapped_bytes + child->buffers.bytes + kShadowRoomBytes;
  if (now[0] <= most) return;
  uint64_t bound[2] = {most, most};
  int64_t error = SysCall(kSysPrlimit, 0, kRlimitAddressSpace, AddressOf(bound), 0);
  if (error < 0) FailShadow(child, kStepBuffer, error);
}

void RebuildTeam(RegionHeader* region, ChildControl* child, uint64_t own_block) {
  enum : uint64_t {
    kVm = 0x100,
    kFs = 0x200,
    kFiles = 0x400,
    kHand = 0x800,
    kThread = 0x10000,
    kSem = 0x40000
  };
  constexpr uint64_t kSetTls = 0x80000;
  for (uint32_t i = 0; i < child->team; ++i) {
    uint64_t block = BlockOf(region, child->records[i]);
    if (block == own_block) continue;
    int64_t tid = payload_clone(kVm | kFs | kFiles | kHand | kThread | kSem | kSetTls,
                                block + kBlockStack + kBlockStackBytes, StateOf(block)->fs_base,
                                ThreadMain, block);
    if (tid < 0) FailShadow(child, kStepClone, tid);
  }
}

}  // namespace

uint64_t MapBuffer(ChildControl* child, uint64_t bytes) {
  constexpr uint64_t kReadWrite = 3, kPrivateAnonymous = 0x22, kNoFile = ~uint64_t{0};
  int64_t address = SysCall(kSysMmap, 0, bytes, kReadWrite, kPrivateAnonymous, kNoFile, 0);
  if (address < 0 && address > -4096) FailShadow(child, kStepBuffer, address);
  child->buffers.bytes += bytes + 4096;
  return static_cast<uint64_t>(address);
}

// A little before the rank's own limit, so that an endless run is named rather than killed.
void StartWatchdog(uint64_t ns) {
  uint64_t us = ns / 1000 * 7 / 8 + 1;
  uint64_t timer[4] = {0, 0, us / 1000000, us % 1000000};
  SysCall(kSysSetitimer, 0, AddressOf(timer));
}

void EndShadow(ChildControl* child, ChildDone how) {
  child->end_tsc = Ticks();
  Exchange(child->done, uint32_t{kChildRunning}, uint32_t{how});
  FutexWakeAll(&child->done);
  for (;;) SysCall(kSysExitGroup, 0);
}

void FailShadow(ChildControl* child, SetupStep step, int64_t error) {
  child->error_step = step;
  child->error = static_cast<int32_t>(-error);
  EndShadow(child, kChildSetupFailed);
}

void ShadowMain(uint64_t block) {
  // The block still holds what the rank wrote; only the region's address is needed, and the leader's block lies in it.
  RegionHeader* region = At<RegionHeader>(StateOf(block)->region);
  ChildControl* child = ChildOf(region);
  ShadowPlan* plan = PlanOf(region);
  BeAlone(child);
  if (child->team == 0 || child->team > kMaxTeam || plan->run_count > kMaxRuns ||
      uint64_t{plan->run_count} * child->team > kResultSlots) {
    FailShadow(child, kStepPlan, 0);
  }
  if (plan->flags & kPlanTrim) FillHoles(child, block);
  WaitForAgent(region, child, plan);
  BeUndumpable();
  Protect(region, child, plan);
  CopyWritten(plan);
  SaveRestores(child, plan);
  ReadOnce(plan);
  for (uint32_t i = 0; i < child->team; ++i) PrepareBlock(region, child, i);
  BoundMemory(child, plan);
  LoadFilter(child, block + kBlockTrace);
  RebuildTeam(region, child, block);
  ThreadMain(block);
}

}  // namespace perfd::agent
