// The way of a thread through a patched loop entry: count, time, or meet the others of its team.
#include "agent/shadow/payload/payload.h"

namespace perfd::agent {
namespace {

enum : uint64_t { kTagExit = 1, kTagTimed = 2, kTagBatch = 4, kTagMask = 63 };

// TSCs of different sockets may differ a little: a heartbeat from the future is fresh.
bool IsStale(RegionHeader* region) {
  int64_t age = static_cast<int64_t>(Ticks() - Load(region->heartbeat_ticks));
  return age > 0 && static_cast<uint64_t>(age) > region->stale_ticks;
}

ThreadRecord* FindRecord(RegionHeader* region, uint32_t tid, uint32_t* index) {
  uint32_t count = BlockCount(region);
  if (count == 0) return nullptr;
  for (uint32_t i = 0, at = tid % count; i < count; ++i, at = at + 1 == count ? 0 : at + 1) {
    ThreadRecord* record = RecordOf(region, at);
    uint32_t owner = Load(record->tid);
    // Again: a handler that interrupted this very search may have taken it for the same thread.
    if (owner == 0) owner = Exchange(record->tid, 0U, tid) ? tid : Load(record->tid);
    *index = at;
    if (owner == tid) return record;
  }
  FetchAdd(region->no_block, 1);
  return nullptr;
}

// One thread at a time: turns are counted in one word. The others run on as if nothing were timed. A thread that a handler takes out
// of its batch for good keeps it, and nobody gets another one.
bool BeginBatch(LiveTurns* turns, Site* site, uint32_t tid) {
  uint32_t wanted = Load(turns->wanted);
  bool begins = wanted != 0 && Exchange(turns->thread, 0U, tid);
  Exchange(site->mode, uint32_t{kModeLiveBatch}, uint32_t{kModeIdle});
  if (!begins) return false;
  turns->begun = wanted;
  turns->left = static_cast<int64_t>(wanted) - 1;
  return true;
}

// Of the thread's batch; 0: it was in none.
uint32_t EndBatch(LiveTurns* turns, uint32_t tid) {
  if (Load(turns->thread) != tid) return 0;
  int64_t left = turns->left;
  uint32_t made = turns->begun - static_cast<uint32_t>(left < 0 ? 0 : left);
  Store(turns->thread, 0U);
  return made;
}

void RecordLive(RegionHeader* region, Site* site, ThreadRecord* record, uint64_t ticks) {
  LiveTurns* batches = TurnsOf(region, site->index);
  uint32_t turns = EndBatch(batches, record->tid);
  uint64_t start = record->live_start;
  if (start == 0 || record->live_site != site->index + 1) return;
  record->live_start = 0;
  uint32_t number = FetchAdd(region->live_next, 1);
  LiveRecord* live = At<LiveRecord>(AddressOf(region) + kLiveOffset) + number % kLiveSlots;
  Store(live->sequence, 0);
  live->start = start;
  live->end = ticks;
  live->tid = record->tid;
  live->site = site->index;
  live->turns = turns;
  Store(live->sequence, number + 1);
  if (number + 1 < region->live_limit) {
    if (turns != 0 && Load(batches->wanted) != 0)
      Exchange(site->mode, uint32_t{kModeIdle}, uint32_t{kModeLiveBatch});
    return;
  }
  Exchange(site->mode, uint32_t{kModeLive}, uint32_t{kModeIdle});
  if (number + 1 == region->live_limit) NotifyAgent(region);
}

}  // namespace

// Source: Intel SDM vol. 2, RDFSBASE/RDGSBASE; arch_prctl(2), ARCH_GET_FS and ARCH_GET_GS.
uint64_t SegmentBase(RegionHeader* region, Segment segment) {
  bool fs = segment == Segment::kFs;
  uint64_t base = 0;
  if ((region->flags & kRegionHasFsgsbase) == 0) {
    constexpr uint64_t kGetFs = 0x1003, kGetGs = 0x1004;
    SysCall(kSysArchPrctl, fs ? kGetFs : kGetGs, AddressOf(&base));
  } else if (fs) {
    asm volatile("rdfsbase %0" : "=r"(base));
  } else {
    asm volatile("rdgsbase %0" : "=r"(base));
  }
  return base;
}

namespace {

// Everything a shadow needs to be this thread. Saving does not change the thread's own state.
void SaveState(RegionHeader* region, ThreadRecord* record, uint64_t block, SavedRegisters* frame) {
  constexpr uint64_t kPushed = 17 * 8, kRedZone = 128;
  CopyBytes(AddressOf(&record->registers), AddressOf(frame), kPushed);
  record->registers.rsp = AddressOf(frame) + kPushed + kRedZone;
  record->fs_base = SegmentBase(region, Segment::kFs);
  record->cpu = CurrentCpu();
  ZeroBytes(AddressOf(record->affinity), sizeof(record->affinity));
  SysCall(kSysGetAffinity, 0, sizeof(record->affinity), AddressOf(record->affinity));
  // XSAVE leaves most of the 64 bytes of its header alone, and XRSTOR faults on what it finds there (SDM vol. 1, 13.4.2).
  ZeroBytes(block + kBlockXsave + 512, 64);
  uint64_t mask = region->xsave_mask;
  asm volatile("xsave64 (%0)" ::"r"(block + kBlockXsave), "a"(static_cast<uint32_t>(mask)),
               "d"(static_cast<uint32_t>(mask >> 32))
               : "memory");
}

// False while entries are to pass first, or when there is nothing to meet for. Any thread may ask: it touches no more than the
// site's own counters.
bool IsTurn(Site* site) {
  uint32_t phase = SitePhase(Load(site->state));
  return phase == kPhaseGather || (phase == kPhaseArmed && FetchAdd(site->countdown, -1) <= 1);
}

// Who waited in vain leaves the next gathering to those who were missing. They may be waiting for this very thread elsewhere (at a
// barrier, with their share of instances done), and would again if it stopped at its next instance; when one of them comes, that
// is over. Whoever is missing may never come, so this lasts twice as long after each failure.
bool IsBackingOff(Site* site, ThreadRecord* record) {
  uint64_t state = Load(site->state);
  return SitePhase(state) == kPhaseArmed && record->backoff_site == site->index + 1 &&
         record->backoff_round + 1 == SiteRound(state) &&
         static_cast<int64_t>(Ticks() - record->backoff_until) < 0;
}

void RecordBackoff(Site* site, ThreadRecord* record, uint32_t round, uint64_t ticks) {
  constexpr uint32_t kMostDoublings = 8;
  uint32_t failures = Load(site->failures);
  uint64_t now = Ticks();
  record->backoff_site = site->index + 1;
  record->backoff_round = round;
  record->backoff_until =
      now + ((now - ticks) << (failures < kMostDoublings ? failures : kMostDoublings));
}

// True when the gathering of `site` is open to this thread; the round it is in goes to *round.
bool IsOpen(Site* site, uint64_t ticks, uint32_t* round) {
  for (;;) {
    uint64_t state = Load(site->state);
    *round = SiteRound(state);
    if (SitePhase(state) == kPhaseGather) return true;
    if (SitePhase(state) != kPhaseArmed) return false;
    if (Exchange(site->state, state, SiteState(*round, 0, kPhaseGather))) {
      site->first_arrival = ticks;
      FetchAdd(site->gathers, 1);
    }
  }
}

// Ends a gathering that did not complete. True when this thread ended it.
bool Abandon(Site* site, ShadowPlan* plan, uint64_t state) {
  bool again = Load(site->failures) < plan->retries;
  Store(site->countdown, 1);
  uint64_t next = SiteState(SiteRound(state) + 1, 0, again ? kPhaseArmed : kPhaseIdle);
  if (!Exchange(site->state, state, next)) return false;
  FetchAdd(site->timeouts, 1);
  FetchAdd(site->failures, 1);
  if (!again) Finish(site, plan, kOutcomeGatherTimeout, 0);
  FutexWakeAll(&site->state);
  if (!again) NotifyAgent(At<RegionHeader>(site->region));
  return true;
}

void Wait(Site* site, ShadowPlan* plan, ThreadRecord* record, uint32_t round) {
  for (int spins = 0; spins < 200 && SitePhase(Load(site->state)) == kPhaseGather; ++spins) Pause();
  uint64_t now = MonotonicNs();
  uint64_t gather_deadline = now + plan->gather_ns;
  // The leader kills and reaps within this; longer means that it is gone.
  uint64_t last_deadline = gather_deadline + plan->shadow_ns + 2000000000;
  Store(record->wait_until_ns, last_deadline);
  for (;; now = MonotonicNs()) {
    uint64_t state = Load(site->state);
    if (SiteRound(state) != round) return;
    if (now >= last_deadline && MayLeave(plan)) return;
    bool gathering = SitePhase(state) == kPhaseGather;
    if (gathering && now >= gather_deadline) {
      if (Abandon(site, plan, state)) return;
      continue;
    }
    FutexWait(&site->state, static_cast<uint32_t>(state),
              gathering ? gather_deadline : last_deadline);
  }
}

// Joins round `round`; returns this thread's place + 1, 0 when the gathering is over.
uint32_t Join(Site* site, ThreadRecord* record, uint32_t round, uint32_t team) {
  for (;;) {
    uint64_t state = Load(site->state);
    if (SitePhase(state) != kPhaseGather || SiteRound(state) != round) return 0;
    uint32_t joined = SiteJoined(state) + 1;
    uint64_t next = SiteState(round, joined, joined >= team ? kPhaseShadow : kPhaseGather);
    record->round = round;
    if (!Exchange(site->state, state, next)) continue;
    Store(record->slot, joined);
    return joined;
  }
}

void TakePart(RegionHeader* region, Site* site, ThreadRecord* record, SavedRegisters* frame,
              Gathering gathering) {
  auto [round, team] = gathering;
  if (team == 0) return;
  ShadowPlan* plan = PlanOf(region);
  uint64_t records = AddressOf(RecordOf(region, 0));
  uint32_t index = static_cast<uint32_t>((AddressOf(record) - records) / sizeof(ThreadRecord));
  uint64_t block = BlockOf(region, index);
  SaveState(region, record, block, frame);
  Store(record->wait_until_ns, 0);
  uint32_t place = Join(site, record, round, team);
  if (place == team) {
    Lead(region, site, gathering, block);
  } else if (place != 0) {
    uint64_t begin = Ticks();
    Wait(site, plan, record, round);
    if (SitePhase(Load(site->state)) == kPhaseArmed) RecordBackoff(site, record, round, begin);
  }
  Store(record->slot, 0);
}

}  // namespace

void Finish(Site* site, ShadowPlan* plan, Outcome outcome, int32_t error) {
  site->last_outcome = outcome;
  site->last_error = error;
  Exchange(site->mode, uint32_t{kModeArmed}, uint32_t{kModeIdle});
  Store(site->generation_done, plan->generation);
}

namespace {

// The plan may be read only between the two changes of in_situ, and only if the site is armed then: the agent changes the mode
// first, then waits until nobody is left. Members stay in place for as long as the shadow lasts.
void MeetInSitu(RegionHeader* region, Site* site, ThreadRecord* record, SavedRegisters* frame) {
  ShadowPlan* plan = PlanOf(region);
  FetchAdd(region->in_situ, 1);
  if (Load(site->mode) == kModeArmed && plan->site == site->index) {
    Gathering gathering{0, plan->team};
    if (gathering.team != 0 && gathering.team <= BlockCount(region) &&
        IsOpen(site, Ticks(), &gathering.round))
      TakePart(region, site, record, frame, gathering);
  }
  FetchAdd(region->in_situ, -1);
}

}  // namespace

void Meet(RegionHeader* region, Site* site, ThreadRecord* record, SavedRegisters* frame) {
  if (!IsTurn(site) || IsBackingOff(site, record)) return;
  // Signals first: a handler that jumps away must leave neither the record busy nor the count raised.
  constexpr uint64_t kSetMask = 2, kMaskBytes = 8;
  uint64_t all = ~uint64_t{0}, old_mask = 0;
  SysCall(kSysSigprocmask, kSetMask, AddressOf(&all), AddressOf(&old_mask), kMaskBytes);
  if (Exchange(record->busy, 0U, 1U)) {
    MeetInSitu(region, site, record, frame);
    Store(record->busy, 0);
  } else {
    FetchAdd(region->busy_entries, 1);
  }
  SysCall(kSysSigprocmask, kSetMask, AddressOf(&old_mask), 0, kMaskBytes);
}

// Returns where the caller writes the time just before it runs the timed copy, or 0; or the block of a recovery, tagged.
extern "C" uint64_t payload_enter(uint64_t tagged_site, SavedRegisters* frame, uint64_t ticks) {
  auto* site = At<Site>(tagged_site & ~uint64_t{kTagMask});
  uint64_t tag = tagged_site & kTagMask;
  auto* region = At<RegionHeader>(site->region);
  if (region->magic != kShadowMagic) return 0;
  if (Load(site->mode) == kModeArrival) return Arrive(region, frame);
  bool foreign = static_cast<uint32_t>(SysCall(kSysGetpid)) != region->pid;
  if (foreign) FetchAdd(region->foreign_entries, 1);
  uint32_t mode = Load(site->mode);
  bool stale = false;
  if (tag != kTagExit) {
    if (!foreign && static_cast<uint32_t>(FetchAdd(site->entries, 1) + 1) == site->ring_at &&
        mode == kModeEntryCount)
      NotifyAgent(region);
    // A child of the rank looks, too: its parent may enter no more.
    stale = IsStale(region);
    if (stale) FetchAdd(region->stale_entries, 1);
    if (stale && !AwaitsJumped(region, mode)) {
      Exchange(site->mode, mode, uint32_t{kModeIdle});
      return 0;
    }
  }
  if (foreign) return 0;
  uint32_t index = 0;
  ThreadRecord* record = FindRecord(region, static_cast<uint32_t>(SysCall(kSysGettid)), &index);
  if (record == nullptr) return 0;
  if (tag == kTagExit) {
    if (!EndPair(region, record, index, ticks)) RecordLive(region, site, record, ticks);
    return 0;
  }
  if (site->index < kMaxSites) FetchAdd(record->entries[site->index], 1);
  if (Load(record->busy) != 0) EndJumped({region, site, record, index, frame, ticks});
  if (stale) return 0;
  if (tag == kTagTimed) {
    record->live_site = site->index + 1;
    if (mode == kModeRecovery) return BeginRecovery({region, site, record, index, frame, ticks});
    return mode == kModeLive ? AddressOf(&record->live_start) : 0;
  }
  if (tag == kTagBatch && mode == kModeLiveBatch &&
      BeginBatch(TurnsOf(region, site->index), site, record->tid)) {
    record->live_site = site->index + 1;
    return AddressOf(&record->live_start);
  }
  if (mode == kModeArmed) Meet(region, site, record, frame);
  return 0;
}

}  // namespace perfd::agent
