#include "agent/shadow/forking/preconditions.h"

#include <fcntl.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "agent/procfs/clone_waiter.h"
#include "agent/procfs/read_file.h"
#include "core/base/cpu_time.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kMb = 1 << 20;

absl::Status Refuse(int32_t pid, absl::string_view reason) {
  return absl::FailedPreconditionError(absl::StrCat("process ", pid, ": ", reason));
}

// Of every page size.
uint64_t FreeHugetlb() {
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/kernel/mm/hugepages", error)) {
    std::string name = entry.path().filename().string();
    absl::string_view size = name;
    uint64_t kb = 0;
    if (!absl::ConsumePrefix(&size, "hugepages-") || !absl::ConsumeSuffix(&size, "kB") ||
        !absl::SimpleAtoi(size, &kb))
      continue;
    bytes += (kb << 10) * ReadNumber(entry.path().string() + "/free_hugepages").value_or(0);
  }
  return bytes;
}

// GPUs and accelerators, and drivers that copy between processes by pages they hold without pinning them.
bool DisturbedByForks(absl::string_view path) {
  for (absl::string_view device : {"/dev/knem", "/dev/xpmem", "/dev/nvidia", "/dev/kfd",
                                   "/dev/dri/", "/dev/accel/", "/dev/hl", "/dev/habanalabs"}) {
    if (absl::StartsWith(path, device)) return true;
  }
  return false;
}

// Rings and arrays that the kernel keeps in ordinary memory; whatever else is mapped from an anonymous inode (vfio, dmabuf, what
// graphics drivers invent) may be a device.
bool IsKernelMemory(absl::string_view path) {
  for (absl::string_view kind : {"[perf_event]", "[io_uring]", "bpf-map", "[eventpoll]"}) {
    if (absl::StartsWith(path, absl::StrCat("anon_inode:", kind))) return true;
  }
  return false;
}

absl::Status JudgeFiles(const RankHazards& h) {
  for (const OpenFile& file : h.files) {
    const std::string which = absl::StrCat(" (descriptor ", file.number, ", ", file.target, ")");
    if (file.flags & O_DIRECT)
      return Refuse(h.pid, absl::StrCat("a file is open for direct I/O", which));
    if (file.target == "anon_inode:[userfaultfd]")
      return Refuse(h.pid, absl::StrCat("it handles its own page faults", which));
    if (DisturbedByForks(file.target))
      return Refuse(h.pid, absl::StrCat("a device is open that a fork disturbs", which));
  }
  for (const MapEntry& map : h.maps) {
    if (DisturbedByForks(map.path))
      return Refuse(h.pid,
                    absl::StrCat("a device is mapped that a fork disturbs (", map.path, ")"));
    if (absl::StrContains(map.path, "[aio]"))
      return Refuse(h.pid, "asynchronous I/O is set up (io_setup)");
  }
  return absl::OkStatus();
}

double Ms(int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

// The other reads of the same stop, and the system calls between them, want their time, too.
constexpr int64_t kShareOfStop = 4;

}  // namespace

bool IsDevice(const MapEntry& map) {
  // Registers of PCI devices are files there; buffers of devices have no directory.
  if (absl::StartsWith(map.path, "/sys/") || absl::StartsWith(map.path, "/dmabuf")) return true;
  if (absl::StartsWith(map.path, "anon_inode:")) return !IsKernelMemory(map.path);
  if (!absl::StartsWith(map.path, "/dev/")) return false;
  return !absl::StartsWith(map.path, "/dev/shm/") && map.path != "/dev/zero" &&
         !absl::StartsWith(map.path, "/dev/hugepages/");
}

absl::Status JudgeMappings(int32_t pid, const MappingsRead& read, int64_t longest_stop_ns) {
  if (read.all && read.cpu_ns <= longest_stop_ns / kShareOfStop) return absl::OkStatus();
  return Refuse(pid, absl::StrFormat(
                         "it has %s%d mappings: to read %s takes %.1f ms, in which it would stand "
                         "still, and that may be %.1f ms, a quarter of the longest stop of %.1f "
                         "ms (budget.stop)",
                         read.all ? "" : "more than ", read.count, read.all ? "them" : "so many",
                         Ms(read.cpu_ns), Ms(longest_stop_ns / kShareOfStop), Ms(longest_stop_ns)));
}

// Of a hundred thousand no more are read than it takes to see that they are too many.
absl::Status CheckMappings(const ProcFs& procfs, int32_t pid, int64_t longest_stop_ns) {
  constexpr int kTries = 3;    // a machine that does other things makes one longer, none shorter
  constexpr int64_t kFar = 2;  // but not as many times as long
  constexpr size_t kFirstBytes = 256 << 10;
  absl::Status judged;
  size_t bytes = kFirstBytes;
  for (int tries = 0; tries < kTries;) {
    const uint64_t begin = ThreadCpuNs();
    MappingsRead read;
    ASSIGN_OR_RETURN(const std::vector<MapEntry> maps, procfs.FirstMaps(pid, bytes, &read.all));
    read.cpu_ns = static_cast<int64_t>(ThreadCpuNs() - begin);
    read.count = maps.size();
    const bool far = read.cpu_ns > kFar * longest_stop_ns / kShareOfStop;
    judged = JudgeMappings(pid, read, longest_stop_ns);
    if (judged.ok() || far) break;
    if (read.all)
      ++tries;
    else
      bytes *= 2;
  }
  return judged;
}

absl::StatusOr<RankHazards> ReadHazards(int32_t pid, const MemoryFacts& memory, int32_t ranks) {
  ProcFs procfs;
  RankHazards h;
  h.pid = pid;
  h.memory = memory;
  ASSIGN_OR_RETURN(h.status, procfs.Status(pid));
  ASSIGN_OR_RETURN(h.node, ReadNodeMemory());
  ASSIGN_OR_RETURN(h.files, ReadOpenFiles(pid));
  ASSIGN_OR_RETURN(h.maps, procfs.Maps(pid));
  h.cgroup = ReadCgroupMemory(pid);
  h.shadow_tasks = static_cast<uint64_t>(std::max(1, ranks)) *
                   static_cast<uint64_t>(std::max(1, h.status.thread_count));
  h.tasks = ReadTaskRoom(procfs, pid, h.status, h.shadow_tasks + kSpareTasks);
  h.free_hugetlb = FreeHugetlb();
  ASSIGN_OR_RETURN(h.clone_waiter, FindCloneWaiter(procfs, pid));
  utsname name{};
  if (uname(&name) != 0 || sscanf(name.release, "%d.%d", &h.kernel.first, &h.kernel.second) != 2)
    return absl::UnimplementedError("the kernel does not say its version");
  return h;
}

uint64_t ShadowHeadroom(const MemoryFacts& memory) {
  return 64 * kMb + 2 * memory.page_tables;
}

absl::Status JudgeMemory(const MemoryFacts& memory, const NodeMemory& node,
                         const CgroupMemory& cgroup, uint64_t extra, int32_t ranks) {
  const auto shadows = static_cast<uint64_t>(std::max(1, ranks));
  const uint64_t need = shadows * (ShadowHeadroom(memory) + extra);
  const std::string who =
      shadows == 1 ? "a shadow needs"
                   : absl::StrCat("the shadows of ", shadows, " ranks at the same time need");
  if (node.available < need) {
    return absl::FailedPreconditionError(absl::StrFormat("%s %d MB of memory, the node has %d MB",
                                                         who, need / kMb, node.available / kMb));
  }
  if (cgroup.limit && *cgroup.limit < cgroup.current + need) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s %d MB of memory; the job's control group has used %d of %d MB", who,
                        need / kMb, cgroup.current / kMb, *cgroup.limit / kMb));
  }
  constexpr int64_t kNever = 2;
  if (node.overcommit == kNever &&
      node.commit_limit < node.committed + shadows * (memory.accounted + ShadowHeadroom(memory)))
    return absl::FailedPreconditionError(
        "the node does not overcommit memory, and a copy of the rank does not fit");
  return absl::OkStatus();
}

absl::Status JudgeHazards(const RankHazards& h) {
  if (h.status.tracer_pid != 0)
    return Refuse(h.pid, absl::StrCat("process ", h.status.tracer_pid, " traces it (a debugger?)"));
  if (h.status.seccomp_mode != 0) return Refuse(h.pid, "a seccomp filter watches its system calls");
  if (h.status.state == 'Z' || h.status.state == 'X')
    return absl::NotFoundError(absl::StrCat("process ", h.pid, " has ended"));
  if (h.cgroup.oom_group)
    return Refuse(h.pid,
                  "memory.oom.group=1: running out of memory in a shadow would end the whole job");
  if (h.cgroup.oom_waits)
    return Refuse(
        h.pid,
        "oom_kill_disable=1 in its control group: running out of memory in a shadow would "
        "put the whole job to sleep");
  if (h.clone_waiter != 0)
    return Refuse(h.pid, absl::StrCat("thread ", h.clone_waiter,
                                      " waits for any child, clones too (__WALL or __WCLONE): it "
                                      "would reap a shadow as one of the program's children"));
  RETURN_IF_ERROR(JudgeFiles(h));
  if (h.memory.private_hugetlb > h.free_hugetlb)
    return Refuse(h.pid, absl::StrFormat("it has %d MB of private huge pages (hugetlb), %d MB are "
                                         "free: a copy could not be written",
                                         h.memory.private_hugetlb / kMb, h.free_hugetlb / kMb));
  // Until 5.12 a fork left pinned pages with whoever writes last: mm/memory.c copy_present_page.
  const bool old = h.kernel < std::pair(5, 12);
  if (h.memory.pinned > 0 && old)
    return Refuse(h.pid,
                  "it has pinned memory (RDMA), which this kernel does not copy when it forks");
  if (absl::Status tasks = JudgeTasks(h.tasks, h.shadow_tasks); !tasks.ok())
    return Refuse(h.pid, tasks.message());
  absl::Status memory = JudgeMemory(h.memory, h.node, h.cgroup);
  return memory.ok() ? memory : Refuse(h.pid, memory.message());
}

}  // namespace perfd::agent
