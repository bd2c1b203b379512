// A fork that leaves out what the loop does not touch: the leader marks it MADV_DONTFORK, forks, and takes the marks back.
// Should anything else of this process fork in between, its child would lack that memory. So all threads of the process stand
// in this payload with their signals blocked: the agent has counted them while they stood, and none of them may go on before
// the marks are gone. What follows the first mark is a straight line that waits for nobody; nothing but the end of the whole
// process ends it half-way. Nor does anything depend on the agent from then on.
#include "agent/shadow/payload/payload.h"

namespace perfd::agent {
namespace {

enum : uint64_t { kDontFork = 10, kDoFork = 11 };
inline constexpr uint64_t kScanNs = 100000;
inline constexpr uint64_t kPublishNs =
    1000000;  // a member that joined says right afterwards how long it stays
inline constexpr int kUnmarkTries = 200;  // the kernel may lack memory for a moment

uint32_t AnswerOfAgent(RegionHeader* region, ShadowPlan* plan) {
  Store(plan->trim.waiting, 1U);
  NotifyAgent(region);
  uint64_t deadline = MonotonicNs() + plan->agent_wait_ns;
  for (;;) {
    uint32_t answer = Load(plan->trim.answer);
    if (IsAnswerTo(plan->generation, answer)) return answer & kTrimAnswerMask;
    if (MonotonicNs() >= deadline) return 0;
    SleepNs(kScanNs);
  }
}

// True when every other member stays in Wait() until EndTrim. A member that leaves looks at `marked` when its time is up; it
// was set before this looks at the time, so a member either sees it or would have been found to be late here.
bool MembersStay(RegionHeader* region, ChildControl* child) {
  auto self = static_cast<uint32_t>(SysCall(kSysGettid));
  uint64_t deadline = MonotonicNs() + kPublishNs;
  for (uint32_t i = 0; i < child->team; ++i) {
    if (child->records[i] >= BlockCount(region)) return false;
    ThreadRecord* record = RecordOf(region, child->records[i]);
    if (Load(record->tid) == self) continue;
    uint64_t until;
    while ((until = Load(record->wait_until_ns)) == 0) {
      if (MonotonicNs() >= deadline) return false;
      Pause();
    }
    if (MonotonicNs() >= until) return false;
  }
  return true;
}

// What is marked is what is unmarked, whatever becomes of the plan.
void Retain(ShadowPlan* plan, TrimmedOut* trimmed_out) {
  uint32_t count = Load(plan->trim.count);
  trimmed_out->count = count < kMaxTrims ? count : kMaxTrims;
  CopyBytes(AddressOf(trimmed_out->ranges), AddressOf(plan->trim.ranges),
            trimmed_out->count * sizeof(TrimRange));
}

bool Advise(const TrimRange& range, uint64_t advice) {
  return SysCall(kSysMadvise, range.address, range.bytes, advice) == 0;
}

void Unmark(ShadowPlan* plan, const TrimmedOut* trimmed_out, uint32_t count) {
  for (uint32_t i = 0; i < count && i < kMaxTrims; ++i) {
    int tries = 0;
    while (!Advise(trimmed_out->ranges[i], kDoFork) && ++tries < kUnmarkTries) SleepNs(kScanNs);
    if (tries == kUnmarkTries) FetchAdd(plan->trim.stuck, 1);
  }
  Store(plan->trim.marked, 0U);
}

}  // namespace

int32_t BeginTrim(RegionHeader* region, ChildControl* child, ShadowPlan* plan, uint64_t block) {
  if ((plan->flags & kPlanTrim) == 0) return 0;
  uint32_t answer = AnswerOfAgent(region, plan);
  if (answer != kTrimGo) return answer == 0 ? kTrimNoAnswer : kTrimRefused;
  Store(plan->trim.marked, 1U);
  if (!MembersStay(region, child)) {
    Store(plan->trim.marked, 0U);
    return kTrimTooLate;
  }
  TrimmedOut* trimmed_out = LeftOutOf(block);
  Retain(plan, trimmed_out);
  for (uint32_t i = 0; i < trimmed_out->count; ++i) {
    if (Advise(trimmed_out->ranges[i], kDontFork)) continue;
    Unmark(plan, trimmed_out, i + 1);  // a part of this one may be marked
    return kTrimNotMarked;
  }
  return 0;
}

void EndTrim(ShadowPlan* plan, uint64_t block) {
  const TrimmedOut* trimmed_out = LeftOutOf(block);
  if (Load(plan->trim.marked)) Unmark(plan, trimmed_out, trimmed_out->count);
}

// What the copy lacks is where the kernel would put its next mappings, and then runs would read and write those instead.
void FillHoles(ChildControl* child, uint64_t block) {
  enum : uint64_t { kNoAccess = 0, kPrivateAnonymous = 0x22, kNoReserve = 0x4000 };
  enum : uint64_t { kFixedNoReplace = 0x100000, kNoFile = ~uint64_t{0} };
  const TrimmedOut* trimmed_out = LeftOutOf(block);
  for (uint32_t i = 0; i < trimmed_out->count && i < kMaxTrims; ++i) {
    const TrimRange& range = trimmed_out->ranges[i];
    int64_t got = SysCall(kSysMmap, range.address, range.bytes, kNoAccess,
                          kPrivateAnonymous | kNoReserve | kFixedNoReplace, kNoFile, 0);
    // Kernels before 4.17 take the address for a hint.
    if (static_cast<uint64_t>(got) != range.address)
      FailShadow(child, kStepBuffer, got < 0 && got > -4096 ? got : 0);
  }
}

bool MayLeave(ShadowPlan* plan) {
  if (Load(plan->trim.marked) == 0) return true;
  SleepNs(kScanNs);
  return false;
}

}  // namespace perfd::agent
