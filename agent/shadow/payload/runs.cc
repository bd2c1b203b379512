// One thread of the rebuilt team: its place on the machine, then the runs of the plan in step with the others.
#include "agent/shadow/payload/payload.h"

namespace perfd::agent {
namespace {

inline constexpr uint64_t kCacheLine = 64;

// Threads spin briefly, then sleep: there may be fewer CPUs than threads.
void Barrier(ChildControl* child) {
  uint32_t turn = Load(child->barrier.turn);
  if (FetchAdd(child->barrier.count, 1) + 1 == child->team) {
    Store(child->barrier.count, 0);
    FetchAdd(child->barrier.turn, 1);
    if (child->team > 1) FutexWakeAll(&child->barrier.turn);
    return;
  }
  for (int spins = 0; spins < 2000; ++spins) {
    if (Load(child->barrier.turn) != turn) return;
    Pause();
  }
  while (Load(child->barrier.turn) == turn)
    FutexWait(&child->barrier.turn, turn, MonotonicNs() + 100000000);
}

void EnterPlacement(ChildControl* child, ThreadRecord* record, uint64_t block) {
  constexpr uint64_t kSetGs = 0x1001;
  SysCall(kSysArchPrctl, kSetGs, block);
  uint64_t mask[kAffinityWords];
  CopyBytes(AddressOf(mask), AddressOf(record->affinity), sizeof(mask));
  if (child->pin && record->cpu < 64 * kAffinityWords) {
    ZeroBytes(AddressOf(mask), sizeof(mask));
    mask[record->cpu / 64] = uint64_t{1} << record->cpu % 64;
  }
  // Inherited masks are the leader's; all threads on one core falsify memory variants while REF still looks right.
  SysCall(kSysSetAffinity, 0, sizeof(mask), AddressOf(mask));
  struct {
    uint64_t address;
    uint32_t flags, pad;
    uint64_t bytes;
  } stack = {block + kBlockStack, 0, 0, kAltStackBytes};
  SysCall(kSysSigaltstack, AddressOf(&stack), 0);
  OpenSignals();
}

}  // namespace

// Masks every exception in the saved image; a copy may compute with garbage. SDM vol. 1, 10.2.3 (MXCSR) and 8.1.5 (FCW).
void MaskExceptions(BlockState* state, uint64_t block) {
  uint16_t* control_word = At<uint16_t>(block + kBlockXsave);
  *control_word = static_cast<uint16_t>(*control_word | 0x3f);
  state->mxcsr = (*At<uint32_t>(block + kBlockXsave + 24) | 0x1f80) & ~0x3fU;
}

// Lanes of 64 bytes with full mantissas: no early-out quotient or root.
void FillControl(uint64_t block) {
  for (uint32_t at = 0; at < kCacheLine; at += 8) {
    *At<uint64_t>(block + kControlDividendF64 + at) = 0x3ff5555555555555;  // 1.333
    *At<uint64_t>(block + kControlDivisorF64 + at) = 0x3ffb6db6db6db6db;   // 1.714
    *At<uint64_t>(block + kControlDividendF32 + at) = 0x3faaaaab3faaaaab;
    *At<uint64_t>(block + kControlDivisorF32 + at) = 0x3fdb6db73fdb6db7;
  }
}

namespace {

// This thread's share of the bytes that runs may have changed.
void Restore(ChildControl* child, ShadowPlan* plan, BlockState* state) {
  uint64_t from = child->buffers.restores;
  uint32_t count = plan->restore_count < kMaxRestores ? plan->restore_count : kMaxRestores;
  if (from == 0) return;
  for (uint32_t i = 0; i < count; ++i) {
    const RestoreRange& range = plan->restores[i];
    Share share = ShareOf(child, range, state->index);
    if (share.low < share.high)
      CopyBytes(range.address + share.low, from + share.low, share.high - share.low);
    from += range.bytes;
  }
}

void Evict(ShadowPlan* plan, const RunEntry& run, BlockState* state) {
  uint64_t bytes = plan->memory.evict_bytes[run.flags >> kRunEvictShift & kRunEvictMask];
  if (bytes > state->evict.bytes) bytes = state->evict.bytes;
  for (uint64_t at = 0; at < bytes; at += kCacheLine) {
    auto* word = At<volatile uint64_t>(state->evict.address + at);
    *word = *word + 1;
  }
}

void ResetTrace(const ShadowPlan* plan, uint64_t block) {
  auto* record = At<TraceRecord>(block + kBlockTrace);
  for (uint32_t i = 0; i < ReferencesOf(plan); ++i) record[i] = {~uint64_t{0}, 0, 0, 0};
  *At<uint64_t>(block + kBlockPath) = 0;
}

void KeepBaseline(const ShadowPlan* plan, uint64_t block) {
  const auto* record = At<TraceRecord>(block + kBlockTrace);
  auto* baseline = At<uint64_t>(block + kBlockTraceBaseline);
  for (uint32_t i = 0; i < ReferencesOf(plan); ++i) baseline[i] = TraceDigest(record[i]);
  *At<uint64_t>(block + kBlockPathBaseline) = *At<uint64_t>(block + kBlockPath);
}

// RunResult::differing.
uint16_t CheckTrace(const ShadowPlan* plan, const TraceCheck& check, uint64_t block) {
  const auto* record = At<TraceRecord>(block + kBlockTrace);
  const auto* baseline = At<uint64_t>(block + kBlockTraceBaseline);
  for (uint32_t i = 0; i < ReferencesOf(plan); ++i) {
    const bool kept = (check.kept[i / 64] >> i % 64 & 1) != 0;
    if (kept && TraceDigest(record[i]) != baseline[i]) return static_cast<uint16_t>(i + 1);
  }
  const bool same = *At<uint64_t>(block + kBlockPath) == *At<uint64_t>(block + kBlockPathBaseline);
  return same ? 0 : kPathDiffers;
}

// Slots whose value is an address: they point into the thread's own block.
void SetSelves(ShadowPlan* plan, const RunEntry& run, uint64_t block) {
  for (uint32_t i = run.self_first;
       i < uint32_t{run.self_first} + run.self_count && i < kMaxSelfWords; ++i) {
    const SelfWord& self = plan->tables.selves[i];
    if (self.word < kBlockSlots || self.word > kBlockXsave - 8) continue;
    *At<uint64_t>(block + self.word) = block + static_cast<uint64_t>(self.value);
  }
}

}  // namespace

void PrepareRun(ShadowPlan* plan, const RunEntry& run, BlockState* state, uint64_t block) {
  *At<uint64_t>(block + kBlockIterations) = 0;
  *At<uint64_t>(block + kBlockInnerPasses) = 0;
  *At<uint64_t>(block + kBlockIterationLimit) =
      run.iteration_limit ? run.iteration_limit : ~uint64_t{0};
  *At<int64_t>(block + kBlockInstancesLeft) = static_cast<int64_t>(run.instances) - 1;
  *At<uint64_t>(block + kBlockInstanceSeen) = run.instances;
  *At<uint64_t>(block + kBlockInstancesEntered) = 0;
  uint32_t mxcsr = state->mxcsr;
  if (run.flags & kRunFtz) mxcsr |= 0x8000;
  if (run.flags & kRunDaz) mxcsr |= 0x40;
  *At<uint32_t>(block + kBlockXsave + 24) = mxcsr;
  if (run.flags & kRunTrace) ResetTrace(plan, block);
  state->target = run.copy;
  state->progress.faulted = 0;
  Evict(plan, run, state);
  if (run.flags & kRunPinned) ZeroBytes(block + kBlockSlots, kSlotBytes * kSlotCount);
  SetSelves(plan, run, block);
}

namespace {

// Counted, or turns of the loop around: the last decrement is of the one that was not begun any more.
uint64_t InstancesOf(const RunEntry& run, uint64_t block) {
  uint64_t entered = *At<uint64_t>(block + kBlockInstancesEntered);
  if (entered != 0) return entered;
  int64_t left = *At<int64_t>(block + kBlockInstancesLeft);
  return run.instances - static_cast<uint64_t>(left < 0 ? 0 : left);
}

// The state at the loop's entry is put aside once; runs that go on from each other have their own instead.
void KeepEntry(BlockState* state, uint64_t block) {
  CopyBytes(AddressOf(&state->succession.entry), AddressOf(&state->registers),
            sizeof(SavedRegisters));
  CopyBytes(block + kBlockXsaveEntry, block + kBlockXsave, kBlockXsaveBytes);
}

// Every other run starts from the loop's entry.
void ChooseStart(ChildControl* child, const RunEntry& run, BlockState* state, uint64_t block) {
  const bool goes_on = run.flags & kRunSuccessive && Load(child->orders.must_start_anew) == 0;
  state->succession.goes_on = state->succession.goes_on && goes_on;
  if (state->succession.goes_on || !state->succession.moved) return;
  CopyBytes(AddressOf(&state->registers), AddressOf(&state->succession.entry),
            sizeof(SavedRegisters));
  CopyBytes(block + kBlockXsave, block + kBlockXsaveEntry, kBlockXsaveBytes);
  state->succession.moved = 0;
}

// The copy counts before each instance; at the loop's entry one of them has already begun.
void EnterAgain(const RunEntry& run, BlockState* state, uint64_t block) {
  if (!state->succession.goes_on) return;
  state->target = run.turn;
  *At<int64_t>(block + kBlockInstancesLeft) = static_cast<int64_t>(run.instances);
}

// Flags are not in use where instances are counted (agent/variant/batch.cc), and the stack pointer is that of the entry.
void KeepEnd(ChildControl* child, const RunEntry& run, BlockState* state, uint64_t block,
             RunResult* result) {
  if ((run.flags & kRunSuccessive) == 0) return;
  const bool counted_out = *At<int64_t>(block + kBlockInstancesLeft) < 0;
  state->succession.goes_on =
      counted_out && !state->progress.faulted && Load(child->orders.must_start_anew) == 0;
  state->succession.moved = 1;
  if (!state->succession.goes_on) {
    if (!state->progress.faulted) result->status = kRunCutShort;
    return;
  }
  const uint64_t flags = state->registers.flags;
  CopyBytes(AddressOf(&state->registers), AddressOf(&state->succession.left),
            sizeof(SavedRegisters));
  state->registers.flags = flags;
  const uint64_t mask = state->xsave_mask;
  asm volatile("xsave64 (%0)" ::"r"(block + kBlockXsave), "a"(static_cast<uint32_t>(mask)),
               "d"(static_cast<uint32_t>(mask >> 32))
               : "memory");
}

void RunOne(ChildControl* child, const RunEntry& run, BlockState* state, uint64_t block,
            RunResult* result) {
  Barrier(child);
  state->in_run = 1;
  payload_run(block);
  state->in_run = 0;
  result->cycles = state->end - state->start;
  result->iterations = *At<uint64_t>(block + kBlockIterations);
  result->inner_passes = *At<uint64_t>(block + kBlockInnerPasses);
  result->instances = run.instances == 0 ? 0 : InstancesOf(run, block);
  result->start = state->start;
  result->cpu = static_cast<uint16_t>(state->end_cpu & 0xfff);
  result->differing = 0;
  result->status = state->progress.faulted ? kRunFaulted : kRunOk;
  KeepEnd(child, run, state, block, result);
}

// Until walks through page tables and caches are as the program has them. The team meets at each arrival, as for runs: some may come to the
// loop several times before the others do.
bool PassesArrival(const ShadowPlan* plan, ChildControl* child, BlockState* state) {
  if (plan->tables.warm_ticks == 0 || state->progress.warm) return false;
  if (state->index == 0) child->orders.warm = Ticks() - child->ready_tsc >= plan->tables.warm_ticks;
  Barrier(child);
  state->progress.warm = Load(child->orders.warm);
  Barrier(child);
  return !state->progress.warm;
}

void RunPlan(RegionHeader* region, ChildControl* child, BlockState* state, uint64_t block) {
  ShadowPlan* plan = PlanOf(region);
  uint32_t count = plan->run_count < kMaxRuns ? plan->run_count : kMaxRuns;
  for (; state->progress.next_run < count; ++state->progress.next_run) {
    const uint32_t i = state->progress.next_run;
    RunEntry run = plan->runs[i];
    const bool natural = run.flags & kRunNatural;
    if (natural && (!state->progress.arrived || PassesArrival(plan, child, state)))
      GoOn(region, child, state, block);
    if (state->index == 0) {
      child->current_run = i;
      const bool late = natural && IsLate(plan, child);
      if (late || Ticks() - child->begin_tsc > plan->soft_ticks) child->orders.stop = 1;
    }
    if (natural) state->progress.arrived = 0;
    Barrier(child);
    if (Load(child->orders.stop)) return;
    if (run.flags & kRunRestore && !natural && !RestoreLines(child, state->index))
      Restore(child, plan, state);
    Barrier(child);
    ChooseStart(child, run, state, block);
    PrepareRun(plan, run, state, block);
    EnterAgain(run, state, block);
    RunResult* result = ResultsOf(region) + uint64_t{i} * child->team + state->index;
    RunOne(child, run, state, block, result);
    if (run.flags & kRunBaseline) KeepBaseline(plan, block);
    const uint32_t check = run.flags >> kRunCheckShift & kRunCheckMask;
    if (check != 0 && check <= kMaxTraceChecks)
      result->differing = CheckTrace(plan, plan->tables.trace_checks[check - 1], block);
    Barrier(child);
    if (run.flags & kRunLearn) LearnLines(child, plan, state->index);
    if (run.flags & kRunLookAhead) LearnAhead(region, child, state, block);
    // What a changed instance has left is not what the program goes on from: older values are.
    if (natural && run.flags & kRunRestore) {
      Restore(child, plan, state);
      Barrier(child);
    }
    if (state->index == 0) child->runs_done = i + 1;
  }
}

}  // namespace

void ThreadMain(uint64_t block) {
  BlockState* state = StateOf(block);
  auto* region = At<RegionHeader>(state->region);
  ChildControl* child = ChildOf(region);
  EnterPlacement(child, RecordOf(region, child->records[state->index]), block);
  MaskExceptions(state, block);
  if (PlanOf(region)->flags & kPlanSuccessive) KeepEntry(state, block);
  FillControl(block);
  if (state->index == 0) child->ready_tsc = Ticks();
  Barrier(child);
  RunOn(region, child, state, block);
}

void RunOn(RegionHeader* region, ChildControl* child, BlockState* state, uint64_t block) {
  RunPlan(region, child, state, block);
  Barrier(child);
  if (state->index == 0) EndShadow(child, kChildFinished);
  for (;;) SysCall(kSysExit, 0);
}

}  // namespace perfd::agent
