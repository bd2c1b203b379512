// Recovery mode: a thread of the rank itself runs a copy once from the state it came with, gets that state back, and goes on
// with the loop. Only copies of which the agent has proved that they end, store nothing and fault nowhere the loop would not.
#include "agent/shadow/payload/payload.h"

namespace perfd::agent {
namespace {

enum : uint64_t { kSetMask = 2, kMaskBytes = 8 };
inline constexpr uint64_t kPushedWords = 17;

RecoveryResult* ResultOf(RegionHeader* region, uint32_t slot) {
  return At<RecoveryResult>(AddressOf(ResultsOf(region))) + slot;
}

uint32_t LimitOf(const RecoveryPlan& plan) {
  return plan.limit < kMostRecoveries ? plan.limit : kMostRecoveries;
}

uint64_t WordOf(SavedRegisters* frame, uint8_t word) {
  return word < kPushedWords ? At<uint64_t>(AddressOf(frame))[word] : 0;
}

uint64_t DistanceOf(const RecoveryPlan& plan, SavedRegisters* frame) {
  return (WordOf(frame, plan.plus) - WordOf(frame, plan.minus) + plan.offset) & plan.mask;
}

void EndRecovery(Site* site, ShadowPlan* plan) {
  Exchange(site->mode, uint32_t{kModeRecovery}, uint32_t{kModeIdle});
  Store(site->generation_done, plan->generation);
}

// The turn of this distance in this thread; nothing when there are too many different ones.
bool TakeTurn(ShadowPlan* plan, uint64_t block, uint64_t distance, uint32_t* turn) {
  Strata* strata = StrataOf(block);
  if (strata->generation != plan->generation) {
    strata->generation = plan->generation;
    strata->count = 0;
    strata->pair = 0;
  }
  uint32_t count = strata->count < kMaxStrata ? strata->count : kMaxStrata;
  uint32_t at = 0;
  while (at < count && strata->of[at].distance != distance) ++at;
  if (at == kMaxStrata) return false;
  if (at == count) {
    strata->of[at] = {distance, 0, 0};
    strata->count = count + 1;
  }
  *turn = strata->of[at].turns++;
  return true;
}

// Which run this entry is for, with the number of its result.
bool Choose(const Entry& entry, ShadowPlan* plan, uint64_t block, BlockState* state) {
  const RecoveryPlan& recovery = plan->recovery;
  uint64_t distance = DistanceOf(recovery, entry.frame);
  uint32_t turn = 0;
  if (distance > recovery.most_distance || !TakeTurn(plan, block, distance, &turn)) {
    if (FetchAdd(entry.site->recovery_skips, 1) + 1 >= recovery.skips)
      EndRecovery(entry.site, plan);
    return false;
  }
  RunEntry run = plan->runs[turn % plan->run_count];
  if ((run.flags & kRunInSitu) == 0) return false;
  uint32_t slot = FetchAdd(entry.site->recoveries, 1);
  if (slot >= LimitOf(recovery)) {
    EndRecovery(entry.site, plan);
    return false;
  }
  ZeroBytes(AddressOf(state), sizeof(BlockState));
  state->run = run;
  state->distance = distance;
  state->slot = slot;
  state->turn = turn;
  state->generation = plan->generation;
  return true;
}

void Save(const Entry& entry, uint64_t block, BlockState* state) {
  state->self = block;
  state->region = AddressOf(entry.region);
  state->site = AddressOf(entry.site);
  state->record = AddressOf(entry.record);
  state->began = entry.ticks;
  state->xsave_mask = entry.region->xsave_mask;
  CopyBytes(AddressOf(&state->registers), AddressOf(entry.frame), kPushedWords * 8);
  state->registers.rsp = StackPointerOf(entry.frame);
  // XSAVE leaves most of the 64 bytes of its header alone, and XRSTOR faults on what it finds there (SDM vol. 1, 13.4.2).
  ZeroBytes(block + kBlockXsave + 512, 64);
  asm volatile("xsave64 (%0)" ::"r"(block + kBlockXsave),
               "a"(static_cast<uint32_t>(state->xsave_mask)),
               "d"(static_cast<uint32_t>(state->xsave_mask >> 32))
               : "memory");
  state->own_control = *At<uint16_t>(block + kBlockXsave);
  state->own_mxcsr = *At<uint32_t>(block + kBlockXsave + 24);
}

// What a handler that jumps away would take along.
void Borrow(const Entry& entry, uint64_t signals) {
  RunInSitu& run = entry.record->run;
  AlternateStack stack{};
  constexpr int32_t kDisabled = 2;
  SysCall(kSysSigaltstack, 0, AddressOf(&stack));
  run.signals = signals;
  run.gs_base = SegmentBase(entry.region, Segment::kGs);
  run.stack_pointer = StackPointerOf(entry.frame);
  run.other_stack = stack.address;
  run.other_stack_bytes = stack.flags & kDisabled ? 0 : stack.bytes;
  Store(run.inside, kInCopy);
}

bool Enter(const Entry& entry, uint64_t* signals) {
  uint64_t all = ~uint64_t{0};
  SysCall(kSysSigprocmask, kSetMask, AddressOf(&all), AddressOf(signals), kMaskBytes);
  if (Exchange(entry.record->busy, 0U, 1U)) return true;
  FetchAdd(entry.region->busy_entries, 1);
  SetSignals(*signals);
  return false;
}

bool IsPlanFor(Site* site, ShadowPlan* plan) {
  return plan->site == site->index && plan->run_count != 0 && plan->run_count <= kMaxRuns &&
         plan->recovery.limit != 0;
}

}  // namespace

uint64_t StackPointerOf(SavedRegisters* frame) {
  constexpr uint64_t kRedZone = 128;
  return AddressOf(frame) + kPushedWords * 8 + kRedZone;
}

void SetSignals(uint64_t mask) {
  SysCall(kSysSigprocmask, kSetMask, AddressOf(&mask), 0, kMaskBytes);
}

void SetGsBase(RegionHeader* region, uint64_t base) {
  if (region->flags & kRegionHasFsgsbase) {
    asm volatile("wrgsbase %0" ::"r"(base) : "memory");
  } else {
    constexpr uint64_t kSetGs = 0x1001;
    SysCall(kSysArchPrctl, kSetGs, base);
  }
}

// The plan may be read only between the two changes of in_situ, or while the record says that its thread is inside, and only
// if the site is in recovery then: the agent changes the mode first, then waits until nobody is left. All signals are blocked
// but while the record says so: a handler that jumps away must leave neither the record busy nor the count raised.
uint64_t BeginRecovery(const Entry& entry) {
  ShadowPlan* plan = PlanOf(entry.region);
  uint64_t block = BlockOf(entry.region, entry.index);
  entry.record->live_start = 0;
  uint64_t signals = 0;
  if (!Enter(entry, &signals)) return 0;
  FetchAdd(entry.region->in_situ, 1);
  BlockState* state = StateOf(block);
  bool runs = Load(entry.site->mode) == kModeRecovery && IsPlanFor(entry.site, plan) &&
              Choose(entry, plan, block, state);
  if (runs) {
    Save(entry, block, state);
    Borrow(entry, signals);
  }
  FetchAdd(entry.region->in_situ, -1);
  if (runs) return block | kRecoverTag;
  Store(entry.record->busy, 0);
  SetSignals(signals);
  return 0;
}

bool EndPair(RegionHeader* region, ThreadRecord* record, uint32_t index, uint64_t ticks) {
  Strata* strata = StrataOf(BlockOf(region, index));
  uint32_t pair = strata->pair;
  if (pair == 0) return false;
  strata->pair = 0;
  uint64_t start = record->live_start;
  record->live_start = 0;
  uint32_t slot = (pair & 0xffff) - 1;
  if (slot >= kMostRecoveries || start == 0 || ticks <= start) return true;
  RecoveryResult* result = ResultOf(region, slot);
  if ((Load(result->generation) & 0xffff) == pair >> 16 && result->tid == record->tid)
    Store(result->original, ticks - start);
  return true;
}

// On the block's own stack. Memory faults are let through here, once the record tells of the run, and closed again behind it.
// Leaves the saved vector state as it was when the thread came.
extern "C" void payload_recover(uint64_t block) {
  BlockState* state = StateOf(block);
  auto* region = At<RegionHeader>(state->region);
  const RunInSitu& run = At<ThreadRecord>(state->record)->run;
  SetSignals(MaskInRun(run.signals));
  MaskExceptions(state, block);
  FillControl(block);
  PrepareRun(PlanOf(region), state->run, state, block);
  constexpr uint64_t kTrapFlag = 0x100;
  uint64_t flags = state->registers.flags;
  state->registers.flags = flags & ~kTrapFlag;
  SetGsBase(region, block);
  payload_run(block);
  SetSignals(~uint64_t{0});
  SetGsBase(region, run.gs_base);
  state->registers.flags = flags;
  *At<uint16_t>(block + kBlockXsave) = static_cast<uint16_t>(state->own_control);
  *At<uint32_t>(block + kBlockXsave + 24) = state->own_mxcsr;
}

// On the thread's own stack again, its vector state restored, signals still blocked. Returns where to write the time at which
// the loop begins.
extern "C" uint64_t payload_resume(uint64_t block, SavedRegisters* frame) {
  BlockState* state = StateOf(block);
  auto* region = At<RegionHeader>(state->region);
  auto* site = At<Site>(state->site);
  auto* record = At<ThreadRecord>(state->record);
  ShadowPlan* plan = PlanOf(region);
  // The run's own flags, and perhaps a handler's frame, lie where the registers were pushed.
  CopyBytes(AddressOf(frame), AddressOf(&state->registers), kPushedWords * 8);
  RecoveryResult* result = ResultOf(region, state->slot);
  result->cycles = state->end - state->start;
  result->original = 0;
  result->iterations = *At<uint64_t>(block + kBlockIterations);
  result->distance = state->distance;
  result->tid = record->tid;
  result->turn = state->turn;
  result->cpu = state->end_cpu & 0xfff;
  result->added = Ticks() - state->began;
  uint64_t all = FetchAdd(site->recovery_ticks, result->added) + result->added;
  Store(result->generation, state->generation);
  if (state->slot + 1 >= LimitOf(plan->recovery) || all >= plan->recovery.most_ticks)
    EndRecovery(site, plan);
  uint64_t signals = record->run.signals;
  uint32_t pair = state->generation << 16 | (state->slot + 1);
  Strata* strata = StrataOf(block);
  Store(record->run.inside, kNotInside);
  Store(record->busy, 0);
  SetSignals(signals);
  // A handler may have been through the same loop just now.
  record->live_site = site->index + 1;
  record->live_start = 0;
  strata->pair = pair;
  return AddressOf(&record->live_start);
}

}  // namespace perfd::agent
