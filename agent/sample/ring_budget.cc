#include "agent/sample/ring_budget.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

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

uint64_t FairRingBytes(uint64_t wanted_bytes, int threads, uint64_t lockable_bytes,
                       uint64_t page_bytes) {
  if (threads <= 0 || lockable_bytes == kUnlimitedBytes) return wanted_bytes;
  const uint64_t each = (lockable_bytes - lockable_bytes / 4) / static_cast<uint64_t>(threads);
  uint64_t bytes = wanted_bytes;
  while (bytes > page_bytes && bytes + page_bytes > each) bytes /= 2;
  return std::max(bytes, page_bytes);
}

}  // namespace perfd::agent
