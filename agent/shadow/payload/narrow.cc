// A fork that leaves out what the loop does not touch: the leader marks it MADV_DONTFORK, forks, and takes the marks back.
// Should anything else of this process fork in between, its child would lack that memory. So all threads of the process stand
// in this payload with their signals blocked: the agent has counted them while they stood, and none of them may go on before
// the marks are gone. What follows the first mark is a straight line that waits for nobody; nothing but the end of the whole
// process ends it half-way. Nor does anything depend on the agent from then on.
#include "agent/shadow/payload/payload.h"

namespace perfd {
namespace {

enum : uint64_t { kDontFork = 10, kDoFork = 11 };
inline constexpr uint64_t kLookNs = 100000;
inline constexpr uint64_t kPublishNs =
    1000000;  // a member that joined says right afterwards how long it stays
inline constexpr int kUnmarkTries = 200;  // the kernel may lack memory for a moment

uint32_t AnswerOfAgent(ShadowPlan* plan) {
  Store(plan->narrow.waiting, 1U);
  uint64_t deadline = MonotonicNs() + plan->agent_wait_ns;
  for (;;) {
    uint32_t answer = Load(plan->narrow.answer);
    if (answer != 0 || MonotonicNs() >= deadline) return answer;
    SleepNs(kLookNs);
  }
}

// True when every other member stays in Wait() until EndNarrow. A member that leaves looks at `marked` when its time is up; it
// was set before this looks at the time, so a member either sees it or would have been found to be late here.
bool MembersStay(RegionHeader* region, ChildControl* child) {
  auto self = static_cast<uint32_t>(SysCall(kSysGettid));
  uint64_t deadline = MonotonicNs() + kPublishNs;
  for (uint32_t i = 0; i < child->team; ++i) {
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

uint32_t CountOf(ShadowPlan* plan) {
  uint32_t count = Load(plan->narrow.count);
  return count < kMaxNarrows ? count : kMaxNarrows;
}

bool Advise(const NarrowRange& range, uint64_t advice) {
  return SysCall(kSysMadvise, range.address, range.bytes, advice) == 0;
}

void Unmark(ShadowPlan* plan, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    int tries = 0;
    while (!Advise(plan->narrow.ranges[i], kDoFork) && ++tries < kUnmarkTries) SleepNs(kLookNs);
    if (tries == kUnmarkTries) FetchAdd(plan->narrow.stuck, 1);
  }
  Store(plan->narrow.marked, 0U);
}

}  // namespace

int32_t BeginNarrow(RegionHeader* region, ChildControl* child, ShadowPlan* plan) {
  if ((plan->flags & kPlanNarrow) == 0) return 0;
  uint32_t answer = AnswerOfAgent(plan);
  if (answer != kNarrowGo) return answer == 0 ? kNarrowNoAnswer : kNarrowRefused;
  Store(plan->narrow.marked, 1U);
  if (!MembersStay(region, child)) {
    Store(plan->narrow.marked, 0U);
    return kNarrowTooLate;
  }
  uint32_t count = CountOf(plan);
  for (uint32_t i = 0; i < count; ++i) {
    if (Advise(plan->narrow.ranges[i], kDontFork)) continue;
    Unmark(plan, i + 1);  // a part of this one may be marked
    return kNarrowNotMarked;
  }
  return 0;
}

void EndNarrow(ShadowPlan* plan) {
  if (Load(plan->narrow.marked)) Unmark(plan, CountOf(plan));
}

bool MayLeave(ShadowPlan* plan) {
  if (Load(plan->narrow.marked) == 0) return true;
  SleepNs(kLookNs);
  return false;
}

}  // namespace perfd
