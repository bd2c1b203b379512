// A thread whose handler has jumped out of a copy (longjmp, siglongjmp, an exception) does not come to the end of its run. Its
// next slow entry finds that out and gives back what the run had changed; who makes none is found by the agent, which asks the
// same question of a thread that stands still (agent/attach/thread_ops.h, GiveBack).
#include "agent/shadow/payload/payload.h"

namespace perfd::agent {
namespace {

enum : uint64_t { kSetMask = 2, kNoSuchChange = 3, kMaskBytes = 8, kPageBytes = 4096 };
inline constexpr int64_t kBadAddress = -14;
// From where the run began, on the same stack.
inline constexpr uint64_t kFarthestUp = 1 << 20;
inline constexpr uint64_t kFarthestDown = 1 << 16;
// The agent is believed to come no more after so many times what makes its heartbeat stale.
inline constexpr uint64_t kMostStale = 10;

// Source: kernel/signal.c, rt_sigprocmask takes the set in before it looks at what is to be done with it.
bool IsReadable(uint64_t address) {
  return SysCall(kSysSigprocmask, kNoSuchChange, address, 0, kMaskBytes) != kBadAddress;
}

struct Span {
  uint64_t start, bytes;
  bool Has(uint64_t address) const { return address - start < bytes; }
};

Span CacheOf(RegionHeader* region, uint64_t copy) {
  for (uint32_t i = 0; i < kMaxCaches; ++i) {
    Span cache{region->cache_address[i], region->cache_bytes[i]};
    if (cache.Has(copy)) return cache;
  }
  return {0, 0};
}

// A handler's frame has the place where the run is to go on: in the copy, or in the payload's code around it, which is in the
// same cache. Also true when memory in between cannot be read: that is no single stack.
bool MayHoldFrame(uint64_t low, uint64_t high, const Span& cache) {
  low &= ~uint64_t{7};
  for (uint64_t at = low; at < high; at += 8) {
    if ((at == low || at % kPageBytes == 0) && !IsReadable(at)) return true;
    if (cache.Has(*At<uint64_t>(at))) return true;
  }
  return false;
}

// On another stack nothing can be said by the stack pointer. Source: sigaltstack(2), SS_ONSTACK.
bool OnAlternateStack() {
  AlternateStack stack{};
  SysCall(kSysSigaltstack, 0, AddressOf(&stack));
  return (stack.flags & 1) != 0;
}

// An entry that is no deeper on the stack than the run was cannot come from a handler in its midst, unless the handler has a
// stack of its own: one that sigaltstack tells, or told before the run (with SS_AUTODISARM it tells nothing inside a handler),
// or the block's, where the run had not begun quite yet. A deeper one cannot, when no frame of such a handler is in between.
bool HasJumped(const Entry& entry, uint64_t block) {
  const RunInSitu& run = entry.record->run;
  uint64_t now = StackPointerOf(entry.frame), then = run.stack_pointer;
  Span own{block, kThreadBlockBytes}, other{run.other_stack, run.other_stack_bytes};
  if (own.Has(now) || other.Has(now) || OnAlternateStack()) return false;
  if (now >= then) return now - then <= kFarthestUp;
  if (then - now > kFarthestDown) return false;
  Span cache = CacheOf(entry.region, StateOf(block)->run.copy);
  return cache.bytes != 0 && !MayHoldFrame(now, then, cache);
}

}  // namespace

// The record stays busy, so that this thread takes part in nothing any more: a program that does this will do it again. What is
// given back can be given twice: signals that have waited may come in between, and their handlers may jump as well.
void EndJumped(const Entry& entry) {
  uint64_t block = BlockOf(entry.region, entry.index);
  RunInSitu& run = entry.record->run;
  if (Load(run.inside) != kInCopy || !HasJumped(entry, block)) return;
  if (SegmentBase(entry.region, Segment::kGs) == block) SetGsBase(entry.region, run.gs_base);
  uint64_t now = 0;
  SysCall(kSysSigprocmask, kSetMask, 0, AddressOf(&now), kMaskBytes);
  // Whoever has jumped with a mask of his own, or set one since, has the right one. What the handler blocked of the two that
  // were open (its own signal, as a rule) it has blocked for the program, too.
  uint64_t loose = kMemoryFaults | kNeverBlocked | kOfTheLibrary;
  if (((now ^ MaskInRun(run.signals)) & ~loose) == 0)
    SetSignals(run.signals | (now & kMemoryFaults));
  Store(run.inside, kJumped);
}

bool AwaitsJumped(RegionHeader* region, uint32_t mode) {
  if (mode != kModeRecovery && mode != kModeEntryCount) return false;
  if ((Ticks() - Load(region->heartbeat_ticks)) / kMostStale > region->stale_ticks) return false;
  for (uint32_t i = 0; i < BlockCount(region); ++i) {
    if (Load(RecordOf(region, i)->run.inside) == kInCopy) return true;
  }
  return false;
}

}  // namespace perfd::agent
