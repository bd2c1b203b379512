#include "agent/sample/ring/ring_budget.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_format.h"

namespace perfd::agent {

uint64_t LockableBytes(const ProcFs& procfs) {
  const auto paranoid = procfs.SysctlInt("kernel/perf_event_paranoid");
  if (paranoid.ok() && *paranoid < 0) return kUnlimitedBytes;
  const auto self = procfs.Status(::getpid());
  if (self.ok() && (self->capabilities.effective >> CAP_IPC_LOCK & 1) != 0) return kUnlimitedBytes;
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) limit.rlim_cur = 0;
  if (limit.rlim_cur == RLIM_INFINITY) return kUnlimitedBytes;
  const auto per_cpu_kib = procfs.SysctlInt("kernel/perf_event_mlock_kb");
  const auto cpus = static_cast<uint64_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  constexpr int64_t kMaxKib = int64_t{1} << 40;
  const auto kib = static_cast<uint64_t>(std::clamp<int64_t>(per_cpu_kib.value_or(0), 0, kMaxKib));
  return (kib << 10) * cpus + std::min<uint64_t>(limit.rlim_cur, uint64_t{1} << 60);
}

uint64_t RingCapBytes(uint64_t memory_bytes) {
  return std::min(memory_bytes / 100, uint64_t{512} << 20);
}

uint64_t NodeMemoryBytes() {
  const auto pages = static_cast<uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L));
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

uint64_t RingBudget::used_bytes() const {
  MutexLock lock(&mutex_);
  return used_bytes_;
}

uint64_t RingBudget::Common(uint64_t held) const {
  return held > own_bytes() ? held - own_bytes() : 0;
}

uint64_t RingBudget::Limit(uint64_t held) const {
  const uint64_t of_others = common_bytes_ - Common(held);
  const uint64_t left = cap_bytes_ / 2 - std::min(of_others, cap_bytes_ / 2);
  // More sessions than there should be do not break the cap.
  const uint64_t free = cap_bytes_ - std::min(used_bytes_, cap_bytes_);
  return std::min(own_bytes() + left / 2, held + free);
}

void RingBudget::Change(uint64_t* held, uint64_t to) {
  common_bytes_ += Common(to) - Common(*held);
  used_bytes_ += to - *held;
  *held = to;
}

uint64_t RingShare::room() const {
  if (budget_ == nullptr) return kUnlimitedBytes;
  MutexLock lock(&budget_->mutex_);
  const uint64_t limit = budget_->Limit(held_);
  return limit - std::min(limit, held_);
}

absl::StatusOr<RingLease> RingShare::Acquire(uint64_t bytes) {
  if (budget_ == nullptr) return RingLease();
  MutexLock lock(&budget_->mutex_);
  const uint64_t limit = budget_->Limit(held_);
  if (held_ + bytes > limit) {
    constexpr double kMib = 1 << 20;
    return absl::ResourceExhaustedError(absl::StrFormat(
        "the rings of this profile hold %.1f MiB, and may hold %.1f of the %.1f MiB (1 %% of the "
        "node's memory, 512 at most) that all profiles of the node share; profile fewer threads",
        static_cast<double>(held_) / kMib, static_cast<double>(limit) / kMib,
        static_cast<double>(budget_->cap_bytes()) / kMib));
  }
  budget_->Change(&held_, held_ + bytes);
  return RingLease(this, bytes);
}

void RingShare::GiveBack(uint64_t bytes) {
  MutexLock lock(&budget_->mutex_);
  budget_->Change(&held_, held_ - bytes);
}

void RingLease::ShrinkTo(uint64_t bytes) {
  if (bytes >= bytes_) return;
  share_->GiveBack(bytes_ - bytes);
  bytes_ = bytes;
}

uint64_t FairRingBytes(uint64_t wanted_bytes, int threads, uint64_t lockable_bytes,
                       uint64_t page_bytes) {
  if (threads <= 0 || lockable_bytes == kUnlimitedBytes) return wanted_bytes;
  const uint64_t each = (lockable_bytes - lockable_bytes / 4) / static_cast<uint64_t>(threads);
  uint64_t bytes = wanted_bytes;
  while (bytes > page_bytes && bytes + page_bytes > each) bytes /= 2;
  return std::max(bytes, page_bytes);
}

}  // namespace perfd::agent
