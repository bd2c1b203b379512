// agent/sample/ring/ring_budget.h - how large rings may be so that every thread gets one, and the node keeps its memory.
//
// Shape    a RingBudget is the node's cap; each session has a RingShare of it, and each ring a RingLease, which gives its memory
//          back. FairRingBytes(what is wanted, threads, what there is) -> a power of two of pages, at least one.
// Rules    the pages of rings are charged to nobody's cgroup: without a cap a user's threads choose how much memory of the
//          node they take. Half of the cap is split evenly among kMostShares: that much every session gets at any time. Of the
//          other half, which is common, a session may have at most half of what the others leave.
// Units    bytes. A ring locks its data and one page more.
// Errors   RingShare::Acquire: kResourceExhausted, with the figures.
// Threads  thread-safe.
// Source   kernel/events/core.c perf_mmap: perf_event_mlock_kb for each online CPU, RLIMIT_MEMLOCK beyond that, no limit
//          with CAP_IPC_LOCK or perf_event_paranoid -1.
#ifndef AGENT_SAMPLE_RING_RING_BUDGET_H_
#define AGENT_SAMPLE_RING_RING_BUDGET_H_

#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "agent/procfs/procfs.h"
#include "core/base/mutex.h"

namespace perfd::agent {

inline constexpr uint64_t kUnlimitedBytes = UINT64_MAX;
inline constexpr uint64_t kPlainRingBytes = 64u << 10;   // 199 Hz x 104 B: some 3 s without a Drain
inline constexpr uint64_t kPieceRingBytes = 256u << 10;  // 199 Hz x 1.3 KiB: 1 s without a Drain

// What this process may lock for rings, were it the only one of its user.
uint64_t LockableBytes(const ProcFs& procfs);

// A quarter is left for threads that start later. Pure.
uint64_t FairRingBytes(uint64_t wanted_bytes, int threads, uint64_t lockable_bytes,
                       uint64_t page_bytes);

// 1 % of the node's memory, 512 MiB at most. Pure.
uint64_t RingCapBytes(uint64_t memory_bytes);
uint64_t NodeMemoryBytes();

class RingBudget {
 public:
  static constexpr uint64_t kMostShares = 16;  // as SessionTable::kMaxSessions

  explicit RingBudget(uint64_t cap_bytes) : cap_bytes_(cap_bytes) {}
  uint64_t cap_bytes() const { return cap_bytes_; }
  uint64_t used_bytes() const;

 private:
  friend class RingShare;
  // Of every share.
  uint64_t own_bytes() const { return cap_bytes_ / 2 / kMostShares; }
  // What a share may come to that has `held` now.
  uint64_t Limit(uint64_t held) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t Common(uint64_t held) const;
  void Change(uint64_t* held, uint64_t to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t cap_bytes_;
  mutable Mutex mutex_;
  uint64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t common_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of used_bytes_, what is above own_bytes()
};

class RingShare;

// The memory of one ring.
class [[nodiscard]] RingLease {
 public:
  RingLease() = default;
  ~RingLease() { ShrinkTo(0); }
  RingLease(RingLease&& other) noexcept
      : share_(other.share_), bytes_(std::exchange(other.bytes_, 0)) {}
  RingLease& operator=(RingLease&& other) noexcept {
    ShrinkTo(0);
    share_ = other.share_;
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  void ShrinkTo(uint64_t bytes);

 private:
  friend class RingShare;
  RingLease(RingShare* share, uint64_t bytes) : share_(share), bytes_(bytes) {}

  RingShare* share_ = nullptr;
  uint64_t bytes_ = 0;
};

// Of one session; outlives its leases. Without a budget there is no limit.
class RingShare {
 public:
  explicit RingShare(RingBudget* budget) : budget_(budget) {}
  RingShare(const RingShare&) = delete;
  RingShare& operator=(const RingShare&) = delete;

  // What it may still take.
  uint64_t room() const;
  absl::StatusOr<RingLease> Acquire(uint64_t bytes);

 private:
  friend class RingLease;
  void GiveBack(uint64_t bytes);

  RingBudget* const budget_;
  uint64_t held_ = 0;  // under the budget's mutex
};

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_RING_RING_BUDGET_H_
