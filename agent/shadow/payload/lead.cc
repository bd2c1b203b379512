// The leader: forks the shadow, sleeps until it is done, and lets the team go on whatever happened.
#include "agent/shadow/payload/payload.h"

namespace perfd::agent {
namespace {

enum : uint64_t { kNoHang = 1, kWaitClone = 0x80000000, kSigKill = 9 };
enum : uint64_t { kCloneFs = 0x200, kCloneFiles = 0x400 };
inline constexpr uint64_t kSliceNs = 10000000;
inline constexpr uint64_t kCollectNs = 1000000;
inline constexpr uint64_t kReapNs = 200000000;

// Nothing of the last shadow may be read as one of this one's, which may be killed before it does anything. A plan of too many
// runs is the shadow's to refuse.
void ResetChild(RegionHeader* region, ChildControl* child, ShadowPlan* plan, uint32_t team) {
  uint64_t slots = uint64_t{plan->run_count} * team;
  if (slots <= kResultSlots) ZeroBytes(AddressOf(ResultsOf(region)), slots * sizeof(RunResult));
  ZeroBytes(AddressOf(child), sizeof(ChildControl));
  child->generation = plan->generation;
  child->team = team;
}

// Puts a member where its id belongs among those found so far.
void Seat(ChildControl* child, uint32_t found, uint32_t index, uint32_t tid) {
  uint32_t place = found;
  for (; place > 0 && child->tids[place - 1] > tid; --place) {
    child->tids[place] = child->tids[place - 1];
    child->records[place] = child->records[place - 1];
  }
  child->tids[place] = tid;
  child->records[place] = static_cast<uint16_t>(index);
}

// A member says that it joined right afterwards; it may have lost its CPU in between. Places are in the order of the threads'
// ids: the same in every shadow of the same team, and in what the agent is told and says of its members.
bool CollectTeam(RegionHeader* region, ChildControl* child, uint32_t round) {
  uint64_t deadline = MonotonicNs() + kCollectNs;
  for (;;) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < BlockCount(region); ++i) {
      ThreadRecord* record = RecordOf(region, i);
      uint32_t slot = Load(record->slot);
      if (slot == 0 || slot > child->team || slot > kMaxTeam || record->round != round) continue;
      if (found == child->team) return false;
      Seat(child, found++, i, record->tid);
    }
    if (found == child->team) return true;
    if (MonotonicNs() >= deadline) return false;
    Pause();
  }
}

// Pinning each member where it arrived is right only when they arrived on different CPUs.
bool CpusDiffer(RegionHeader* region, ChildControl* child) {
  for (uint32_t i = 0; i < child->team; ++i) {
    if (child->records[i] >= BlockCount(region)) return false;
    for (uint32_t j = 0; j < i; ++j) {
      if (RecordOf(region, child->records[i])->cpu == RecordOf(region, child->records[j])->cpu)
        return false;
    }
  }
  return true;
}

struct Reaped {
  bool yes = false;
  bool by_program = false;
  int32_t status = 0;
  uint64_t cpu_us = 0;
};

// What wait4 gives of struct rusage (uapi/linux/resource.h): the first two of its 18 words are the user time, the next two the
// system time.
struct ResourceUse {
  uint64_t user_s, user_us, system_s, system_us;
  uint64_t others[14];
};

// No signal reached the rank when the shadow ended, and wait() of the application does not see it: its exit signal is 0. Only
// who waits for any child with __WALL or __WCLONE may have been faster (docs/adr/0029-shadows-stay-children.md).
Reaped Poll(int64_t pid) {
  Reaped reaped;
  ResourceUse use{};
  int64_t got = SysCall(kSysWait4, static_cast<uint64_t>(pid), AddressOf(&reaped.status),
                        kNoHang | kWaitClone, AddressOf(&use));
  constexpr int64_t kNoChild = -10;
  reaped.by_program = got == kNoChild;
  reaped.yes = got == pid || reaped.by_program;
  reaped.cpu_us = (use.user_s + use.system_s) * 1000000 + use.user_us + use.system_us;
  return reaped;
}

// Sleeps until the shadow says that it is done; killed and dead shadows are noticed at the next slice.
Outcome WaitForWord(ChildControl* child, int64_t pid, uint64_t deadline, Reaped* reaped) {
  for (;;) {
    switch (Load(child->done)) {
      case kChildRunning:
        break;
      case kChildFinished:
        return kOutcomeDone;
      case kChildSetupFailed:
        return kOutcomeSetupFailed;
      case kChildWatchdog:
        return kOutcomeWatchdog;
      case kChildTrapped:
        return kOutcomeTrapped;
      case kChildLocked:
        return kOutcomeLocked;
      default:
        return kOutcomeFaulted;
    }
    uint64_t now = MonotonicNs();
    if (now >= deadline) return kOutcomeKilled;
    uint64_t slice = now + kSliceNs < deadline ? now + kSliceNs : deadline;
    FutexWait(&child->done, kChildRunning, slice);
    if (MonotonicNs() < slice) continue;
    *reaped = Poll(pid);
    if (reaped->yes && Load(child->done) == kChildRunning) return kOutcomeDied;
  }
}

// The parent may not go on while the copy lives: it would split huge pages and copy what both share.
Reaped Reap(int64_t pid, uint64_t deadline) {
  uint64_t pause = 20000;
  bool killed = false;
  for (;;) {
    Reaped reaped = Poll(pid);
    uint64_t now = MonotonicNs();
    if (reaped.yes || now >= deadline + kReapNs) return reaped;
    if (now >= deadline && !killed) {
      SysCall(kSysKill, static_cast<uint64_t>(pid), kSigKill);
      killed = true;
    }
    SleepNs(pause);
    pause = pause < 2000000 ? pause * 2 : pause;
  }
}

OwnRights ReadOwnRights() {
  constexpr uint32_t kVersion3 = 0x20080522;  // uapi/linux/capability.h
  constexpr uint64_t kGetDumpable = 3;        // uapi/linux/prctl.h
  struct {
    uint32_t version;
    int32_t pid;
  } whose{kVersion3, 0};
  struct {
    uint32_t effective, permitted, inheritable;
  } sets[2]{};
  OwnRights own{};
  SysCall(kSysGetresuid, AddressOf(&own.uids[0]), AddressOf(&own.uids[1]), AddressOf(&own.uids[2]));
  SysCall(kSysGetresgid, AddressOf(&own.gids[0]), AddressOf(&own.gids[1]), AddressOf(&own.gids[2]));
  SysCall(kSysCapget, AddressOf(&whose), AddressOf(sets));
  own.capabilities = uint64_t{sets[1].permitted} << 32 | sets[0].permitted;
  own.dumpable = static_cast<uint64_t>(SysCall(kSysPrctl, kGetDumpable));
  return own;
}

bool MayFork(const RegionHeader* region) {
  if ((region->flags & kRegionHasRights) == 0) return true;
  const OwnRights own = ReadOwnRights();
  const OwnRights& admitted = region->rights;
  bool same = own.capabilities == admitted.capabilities && own.dumpable == admitted.dumpable;
  for (int i = 0; i < 3; ++i)
    same = same && own.uids[i] == admitted.uids[i] && own.gids[i] == admitted.gids[i];
  return same;
}

struct Ending {
  Outcome outcome;
  int32_t error;
};

Ending ForkAndWait(RegionHeader* region, Site* site, uint64_t own_block, ShadowPlan* plan) {
  ChildControl* child = ChildOf(region);
  if (!MayFork(region)) return {kOutcomeRightsChanged, 0};
  if (region->flags & kRegionShadowTaken) return {kOutcomeTaken, 0};
  StateOf(own_block)->region = AddressOf(region);
  // The team stands still from here on: the fork is part of the pause that is bounded.
  child->begin_tsc = Ticks();
  child->deadline_ns = MonotonicNs() + plan->shadow_ns;
  int32_t reason = BeginTrim(region, child, plan, own_block);
  if (reason != 0) return {kOutcomeNotTrimmed, reason};
  uint64_t deadline = child->deadline_ns;
  uint64_t start = Ticks();
  // No exit signal, and nothing of the file table or directory is copied, so nothing is flushed when the copy ends.
  int64_t pid = payload_clone(kCloneFs | kCloneFiles, own_block + kBlockStack + kBlockStackBytes, 0,
                              ShadowMain, own_block);
  site->fork_ticks = Ticks() - start;
  EndTrim(plan, own_block);
  if (pid < 0) return {kOutcomeForkFailed, static_cast<int32_t>(-pid)};
  Store(site->child_pid, pid);
  NotifyAgent(region);  // which could not tell who asked it before
  Reaped reaped;
  Outcome outcome = WaitForWord(child, pid, deadline, &reaped);
  if (!reaped.yes) {
    reaped = Reap(pid, outcome == kOutcomeKilled ? MonotonicNs() : deadline + kReapNs);
    if (!reaped.yes) Store(region->orphan, pid);
  }
  Store(site->child_pid, 0);
  FetchAdd(site->shadows, 1);
  site->shadow_cpu_us += reaped.cpu_us;
  if (reaped.by_program) {
    Store(region->flags, region->flags | kRegionShadowTaken);
    return {kOutcomeTaken, 0};
  }
  return {outcome, reaped.status};
}

}  // namespace

void Lead(RegionHeader* region, Site* site, Gathering gathering, uint64_t own_block) {
  auto [round, team] = gathering;
  ShadowPlan* plan = PlanOf(region);
  ChildControl* child = ChildOf(region);
  ResetChild(region, child, plan, team);
  Store(region->busy, site->index + 1);
  Store(site->mode, kModeIdle);
  Ending ending{kOutcomeTeamLost, 0};
  if (CollectTeam(region, child, round)) {
    child->pin = (plan->flags & kPlanPinCpu) != 0 && CpusDiffer(region, child);
    ending = ForkAndWait(region, site, own_block, plan);
  }
  Store(region->busy, 0);
  site->pause_end_ticks = Ticks();
  site->pause_ticks = site->pause_end_ticks - site->first_arrival;
  Finish(site, plan, ending.outcome, ending.error);
  Store(site->state, SiteState(round + 1, 0, kPhaseIdle));
  FutexWakeAll(&site->state);
  NotifyAgent(region);
}

}  // namespace perfd::agent
