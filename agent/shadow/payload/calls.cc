// System calls of the program's own code that come to the handler of SIGSYS and are made for it there, or left out: what the C
// library's allocator and locks need. Nothing of it reaches beyond the shadow.
#include "agent/shadow/payload/payload.h"

namespace perfd::agent {
namespace {

inline constexpr int64_t kNoAccess = -13, kTimedOut = -110;
inline constexpr uint64_t kPage = 4096, kMaskBytes = 8;

// Source: mm/madvise.c: this advice is taken for private memory without a file; a range with any other in it, or with a hole, is
// told as an error. It means something to forks only, and a shadow makes none. Nothing here can make other memory of it: mmap is
// private and anonymous, and what is moved was so before.
bool IsPrivateAnonymous(uint64_t address, uint64_t bytes) {
  constexpr uint64_t kWipeOnFork = 18, kKeepOnFork = 19;
  if (bytes == 0 || address % kPage != 0) return false;
  if (SysCall(kSysMadvise, address, bytes, kWipeOnFork) != 0) return false;
  return SysCall(kSysMadvise, address, bytes, kKeepOnFork) == 0;
}

// Where memory was left out of the fork, the holes look like it.
bool MayProtect(const ShadowPlan* plan, const CallArguments& call) {
  constexpr uint64_t kReadWrite = 3;
  return (plan->flags & kPlanTrim) == 0 && (call.of[2] & ~kReadWrite) == 0 &&
         IsPrivateAnonymous(call.of[0], call.of[1]);
}

bool MayMove(const CallArguments& call) {
  constexpr uint64_t kMayMove = 1;
  return (call.of[3] & ~kMayMove) == 0 && IsPrivateAnonymous(call.of[0], call.of[1]);
}

// Source: kernel/signal.c, rt_sigprocmask takes the set in before it looks at what is to be done with it.
bool IsReadable(uint64_t address) {
  constexpr uint64_t kNoSuchChange = 3;
  constexpr int64_t kBadAddress = -14;
  return SysCall(kSysSigprocmask, kNoSuchChange, address, 0, kMaskBytes) != kBadAddress;
}

// glibc asks when it gives back what a thread's arena has too much, and takes a refusal for "no". Source: malloc/arena.c,
// shrink_heap; sysdeps/unix/sysv/linux/malloc-sysdep.h.
bool AsksForOvercommit(uint64_t path) {
  constexpr char kPath[] = "/proc/sys/vm/overcommit_memory";
  if (!IsReadable(path) || !IsReadable(path + sizeof(kPath) - kMaskBytes)) return false;
  for (uint64_t i = 0; i < sizeof(kPath); ++i) {
    if (At<const char>(path)[i] != kPath[i]) return false;
  }
  return true;
}

// A futex is private here, or the filter would not have sent it. Absolute, of the monotonic clock, whoever asked how.
int64_t WaitUntil(const CallArguments& call, uint64_t deadline_ns, uint64_t mask) {
  constexpr uint64_t kPrivateWaitBitset = 9 | 128;
  KernelTime time = ToKernelTime(deadline_ns);
  return SysCall(kSysFutex, call.of[0], kPrivateWaitBitset, call.of[2], AddressOf(&time), 0, mask);
}

// Every member waits, if not at the end of the run: for a word that still says so. Who has been woken waits on until it runs, but
// its word has changed.
bool NobodyGoesOn(const ChildControl* child) {
  uint32_t waiting = Load(child->barrier.count);
  for (uint32_t place = 0; place < child->team; ++place) {
    const uint64_t word = Load(child->waits.of[place].word);
    if (word == 0) continue;
    if (Load(*At<uint32_t>(word)) != child->waits.of[place].value) return false;
    ++waiting;
  }
  return waiting >= child->team;
}

// Nobody but the team is there: when all of it waits and nothing changes for 10 ms, what it waits for is held by a thread that
// the shadow does not have.
int64_t Wait(ChildControl* child, uint32_t place, const CallArguments& call, bool* locked) {
  constexpr uint64_t kWait = 0, kOperation = 127, kPatienceNs = 10000000, kAnyBit = 0xffffffff;
  // With a time of its own it ends by itself, or the shadow's timer does.
  if (call.of[3] != 0)
    return SysCall(kSysFutex, call.of[0], call.of[1], call.of[2], call.of[3], 0, call.of[5]);
  const uint64_t mask = (call.of[1] & kOperation) == kWait ? kAnyBit : call.of[5];
  child->waits.of[place].value = call.of[2] & 0xffffffff;
  Store(child->waits.of[place].word, call.of[0]);
  int64_t result = kTimedOut;
  while (result == kTimedOut && !*locked) {
    const uint32_t ended = Load(child->waits.ended);
    result = WaitUntil(call, MonotonicNs() + kPatienceNs, mask);
    *locked = result == kTimedOut && NobodyGoesOn(child) && Load(child->waits.ended) == ended;
  }
  FetchAdd(child->waits.ended, 1);
  Store(child->waits.of[place].word, 0);
  return result;
}

}  // namespace

Call MakeCall(RegionHeader* region, uint32_t place, const CallArguments& call, int64_t* result) {
  bool locked = false;
  switch (call.number) {
    case kSysMprotect:
      if (!MayProtect(PlanOf(region), call)) return Call::kForbidden;
      *result = SysCall(kSysMprotect, call.of[0], call.of[1], call.of[2]);
      return Call::kMade;
    case kSysMremap:
      if (!MayMove(call)) return Call::kForbidden;
      *result = SysCall(kSysMremap, call.of[0], call.of[1], call.of[2], call.of[3]);
      return Call::kMade;
    case kSysOpenat:
      if (!AsksForOvercommit(call.of[1])) return Call::kForbidden;
      *result = kNoAccess;
      return Call::kMade;
    case kSysFutex: {
      constexpr uint64_t kPrivate = 128, kClockRealtime = 256, kWait = 0, kWaitBitset = 9;
      const uint64_t operation = call.of[1] & ~kClockRealtime & 0xffffffff;
      if (operation != (kPrivate | kWait) && operation != (kPrivate | kWaitBitset))
        return Call::kForbidden;
      *result = Wait(ChildOf(region), place, call, &locked);
      return locked ? Call::kNeverEnds : Call::kMade;
    }
    default:
      return Call::kForbidden;
  }
}

}  // namespace perfd::agent
