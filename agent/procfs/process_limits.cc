#include "agent/procfs/process_limits.h"

#include <linux/capability.h>
#include <sched.h>

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/procfs/read_file.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr size_t kLimitsBytes = 65536;
constexpr uint64_t kLeastMappings = 64;
constexpr uint64_t kPartOfCpuTime = 20;
constexpr uint64_t kPartOfMappings = 64;  // of all it may have: 1023 of 65530

std::string Megabytes(uint64_t bytes) {
  return absl::StrFormat("%.1f MB", static_cast<double>(bytes) / (1 << 20));
}

absl::Status CheckOne(const LimitedMemory& memory, uint64_t bytes, const char* what,
                      const char* how) {
  if (memory.limit == kNoLimit) return absl::OkStatus();
  const uint64_t left = memory.limit - std::min(memory.limit, memory.used);
  const uint64_t reserve = std::max(kLeastReserve, 2 * bytes);
  if (left >= bytes + reserve) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("its limit of ", what, " (", how, ") leaves it ", Megabytes(left),
                   "; measuring takes ", Megabytes(bytes), " and leaves the program at least ",
                   Megabytes(reserve), ": raise the limit by ", Megabytes(bytes + reserve - left)));
}

bool HasRealTimeThread(const ProcFs& procfs, int32_t pid) {
  const absl::StatusOr<std::vector<int32_t>> tids = procfs.Threads(pid);
  return tids.ok() && std::any_of(tids->begin(), tids->end(), [](int32_t tid) {
           const int policy = ::sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK;
           return policy == SCHED_FIFO || policy == SCHED_RR;
         });
}

}  // namespace

// Names hold spaces; at least two of them end a column.
uint64_t SoftLimit(absl::string_view limits, absl::string_view name) {
  for (const absl::string_view line : absl::StrSplit(limits, '\n')) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, name) || !absl::StartsWith(rest, " ")) continue;
    const std::vector<absl::string_view> columns = absl::StrSplit(rest, ' ', absl::SkipEmpty());
    uint64_t soft = kNoLimit;
    if (!columns.empty() && absl::SimpleAtoi(columns[0], &soft)) return soft;
  }
  return kNoLimit;
}

absl::StatusOr<ProcessLimits> ReadProcessLimits(const ProcFs& procfs, int32_t pid) {
  ASSIGN_OR_RETURN(const std::string text,
                   ReadWholeFile(absl::StrCat(procfs.root(), "/", pid, "/limits"), kLimitsBytes));
  ASSIGN_OR_RETURN(const ProcessStatus status, procfs.Status(pid));
  ProcessLimits limits;
  // What it took and gave back it takes again; of which kind that was nothing tells.
  const uint64_t given_back =
      status.memory.most_address_space_bytes -
      std::min(status.memory.most_address_space_bytes, status.memory.address_space_bytes);
  limits.address_space = {SoftLimit(text, "Max address space"),
                          status.memory.address_space_bytes + given_back};
  limits.data = {SoftLimit(text, "Max data size"), status.memory.data_bytes + given_back};
  const bool locks_at_will = (status.capabilities.effective >> CAP_IPC_LOCK & 1) != 0;
  limits.locks = status.memory.locked_bytes > 0;
  if (!locks_at_will)
    limits.locked = {SoftLimit(text, "Max locked memory"), status.memory.locked_bytes + given_back};
  limits.cpu_limit_s = SoftLimit(text, "Max cpu time");
  if (limits.cpu_limit_s != kNoLimit) {
    ASSIGN_OR_RETURN(const uint64_t used_ns, procfs.CpuNs(pid, 0));
    limits.cpu_used_s = used_ns / uint64_t{kNsPerSecond};
  }
  limits.bounds_real_time =
      SoftLimit(text, "Max realtime timeout") != kNoLimit && HasRealTimeThread(procfs, pid);
  return limits;
}

absl::Status CheckCpuTime(const ProcessLimits& limits) {
  if (limits.bounds_real_time)
    return absl::FailedPreconditionError(
        "a thread of a real-time class may compute only for a limited time without a pause "
        "(RLIMIT_RTTIME), which measuring would lengthen");
  if (limits.cpu_limit_s == kNoLimit) return absl::OkStatus();
  const uint64_t left = limits.cpu_limit_s - std::min(limits.cpu_limit_s, limits.cpu_used_s);
  const uint64_t reserve = std::max(kLeastCpuSeconds, limits.cpu_limit_s / kPartOfCpuTime);
  if (left >= reserve) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("its limit of CPU time (ulimit -t, RLIMIT_CPU) leaves it ", left,
                   " s, after which the kernel ends it; measuring takes some of them and leaves "
                   "the program at least ",
                   reserve, " s"));
}

absl::Status CheckRoom(const ProcessLimits& limits, uint64_t bytes) {
  RETURN_IF_ERROR(CheckOne(limits.address_space, bytes, "address space", "ulimit -v, RLIMIT_AS"));
  RETURN_IF_ERROR(CheckOne(limits.data, bytes, "data", "ulimit -d, RLIMIT_DATA"));
  if (!limits.locks) return absl::OkStatus();
  return CheckOne(limits.locked, bytes, "locked memory",
                  "ulimit -l, RLIMIT_MEMLOCK; it locks what it maps");
}

absl::Status CheckMappingRoom(const ProcFs& procfs, size_t used, size_t more) {
  ASSIGN_OR_RETURN(const int64_t read, procfs.SysctlInt("vm/max_map_count"));
  const auto limit = static_cast<uint64_t>(std::max<int64_t>(0, read));
  const uint64_t reserve = std::max(kLeastMappings, limit / kPartOfMappings);
  if (used + more + reserve <= limit) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("it has ", used, " mappings of the ", limit,
                   " that it may have (vm.max_map_count); measuring takes ", more,
                   " and leaves the program at least ", reserve));
}

}  // namespace perfd::agent
