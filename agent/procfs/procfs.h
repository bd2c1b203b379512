// agent/procfs/procfs.h - the one door to /proc: what the kernel says about processes, parsed and bounded.
//
// Shape    every call reads afresh; nothing is cached. The root directory can be a fake tree (tests).
// Errors   kNotFound (process gone: a normal result), kPermissionDenied (names what to change), kInvalidArgument
//          (contents that do not parse), kResourceExhausted (longer than any honest file of its kind).
// Threads  thread-safe (const).
// Safety   what may wait for the process that it is about goes through the SlowFiles, if there is one: Environment, CommandLine,
//          Maps, FirstMaps, ExecutableHead, ExecutableId, Perform. Nothing else waits.
// Source   proc(5).
#ifndef AGENT_PROCFS_PROCFS_H_
#define AGENT_PROCFS_PROCFS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/procfs/read_file.h"
#include "agent/procfs/slow_files.h"

namespace perfd::agent {

// One line of /proc/PID/maps.
struct MapEntry {
  uint64_t start = 0;
  uint64_t end = 0;  // exclusive
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  uint64_t file_offset = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  std::string path;  // without the " (deleted)" mark; "[vdso]" and the like; empty: anonymous
  bool deleted = false;

  bool operator==(const MapEntry&) const = default;
};

// Of /proc/PID/task/TID/schedstat: how a thread got on with the scheduler since it began.
struct ThreadSchedule {
  int32_t tid = 0;
  uint64_t run_ns = 0;    // on a CPU
  uint64_t wait_ns = 0;   // wanted a CPU and had none
  uint64_t switches = 0;  // times it was put on a CPU

  bool operator==(const ThreadSchedule&) const = default;
};

struct MemoryUse {
  uint64_t resident_bytes = 0;
  uint64_t address_space_bytes = 0;       // VmSize
  uint64_t most_address_space_bytes = 0;  // VmPeak
  uint64_t data_bytes = 0;
  uint64_t locked_bytes = 0;
};

// Bit n: capability n of linux/capability.h.
struct CapabilitySets {
  uint64_t effective = 0;
  uint64_t permitted = 0;
};

// Parts of /proc/PID/status that matter here.
struct ProcessStatus {
  std::string name;
  int32_t tgid = 0;
  int32_t parent_pid = 0;
  int32_t tracer_pid = 0;
  uint32_t real_uid = 0;
  uint32_t effective_uid = 0;
  uint32_t saved_uid = 0;
  uint32_t real_gid = 0;
  uint32_t effective_gid = 0;
  uint32_t saved_gid = 0;
  std::vector<uint32_t> groups;  // supplementary
  int32_t thread_count = 0;
  int32_t seccomp_mode = 0;
  MemoryUse memory;
  CapabilitySets capabilities;
  char state = '?';
};

// Fields 4, 22, 28, 38 and the parentheses of /proc/PID/stat: who runs under this pid, read cheaply.
struct ProcessStamp {
  uint64_t start_ticks = 0;  // clock ticks since boot
  std::string command;       // at most 15 bytes, the process may change it; exec does
  char state = '?';
  int32_t parent_pid = 0;
  uint64_t stack_start = 0;   // another one after an exec; 0 without the right to see it
  uint64_t exit_signal = 17;  // what its parent gets when it ends (SIGCHLD); 0: nothing
};

// One line of /proc/PID/cgroup.
struct CgroupEntry {
  int32_t hierarchy = 0;    // 0: the unified one
  std::string controllers;  // comma separated; empty for the unified one
  std::string path;         // from the root of the hierarchy, starts with '/'

  bool operator==(const CgroupEntry&) const = default;
};

// One line of /proc/mounts.
struct MountEntry {
  std::string directory;
  std::string type;
  std::string options;

  bool operator==(const MountEntry&) const = default;
};

// Pure parser of maps text: foreign bytes. Lines that do not parse are an error.
absl::StatusOr<std::vector<MapEntry>> ParseMaps(absl::string_view text);

// Of a file /proc/PID/maps, for ParseMaps and in its order: the line of each executable mapping, and of what lies against an
// anonymous one; without the kernel's page of old system calls. The kernel is asked for these alone; where it cannot be, they are picked out of the whole file. `limit`: bytes of
// text. Errors as ReadWholeFile.
absl::StatusOr<std::string> ReadExecutableMaps(const std::string& maps_path, size_t limit);

// Pure. Lines that it does not understand stay.
std::string PickExecutable(absl::string_view maps);

// Pure parser of the text of /proc/PID/status; unknown lines are skipped, a missing Tgid is an error.
absl::StatusOr<ProcessStatus> ParseStatus(absl::string_view text);

class ProcFs {
 public:
  // Without `slow`, slow reads wait as long as it takes. Shared by all copies, of which each may live longest.
  explicit ProcFs(std::string root = "/proc", std::shared_ptr<SlowFiles> slow = nullptr);

  const std::string& root() const { return root_; }
  absl::StatusOr<std::vector<int32_t>> Pids() const;
  absl::StatusOr<std::vector<int32_t>> Threads(int32_t pid) const;
  absl::StatusOr<ProcessStatus> Status(int32_t pid) const;
  absl::StatusOr<ProcessStatus> ThreadStatus(int32_t pid, int32_t tid) const;
  absl::StatusOr<ProcessStamp> Stamp(int32_t pid) const;
  // Field 22 of stat, clock ticks since boot.
  absl::StatusOr<uint64_t> StartTicks(int32_t pid) const;
  // CPU time used by a thread (tid) or, with tid 0, by the whole process, ns.
  absl::StatusOr<uint64_t> CpuNs(int32_t pid, int32_t tid) const;
  // The kernel's function in which its main thread waits; "0": it does not, or may not be asked.
  absl::StatusOr<std::string> WaitChannel(int32_t pid) const;
  // Of the threads that live now.
  absl::StatusOr<std::vector<ThreadSchedule>> Schedule(int32_t pid) const;
  absl::StatusOr<absl::flat_hash_map<std::string, std::string>> Environment(int32_t pid) const;
  absl::StatusOr<std::vector<std::string>> CommandLine(int32_t pid) const;
  // Target of the exe link as the process sees it, without " (deleted)".
  absl::StatusOr<std::string> Executable(int32_t pid) const;
  absl::StatusOr<std::vector<MapEntry>> Maps(int32_t pid) const;
  // Those in the first `bytes` of the file. *all: there are no more.
  absl::StatusOr<std::vector<MapEntry>> FirstMaps(int32_t pid, size_t bytes, bool* all) const;
  // Path in the unified hierarchy (the "0::" line) unless that is its root, else of the first v1 controller that is not
  // the root, else "/".
  absl::StatusOr<std::string> Cgroup(int32_t pid) const;
  absl::StatusOr<std::vector<CgroupEntry>> Cgroups(int32_t pid) const;
  // What is mounted where, as this process sees it.
  absl::StatusOr<std::vector<MountEntry>> Mounts() const;
  // First bytes of the executable: tells ELF class and machine. At most `limit` bytes.
  absl::StatusOr<std::string> ExecutableHead(int32_t pid, size_t limit) const;
  // Which file is executed; zeros: it cannot be seen. kUnavailable: it may be seen later.
  absl::StatusOr<FileId> ExecutableId(int32_t pid) const;
  // A number in /proc/sys, e.g. SysctlInt("kernel/perf_event_paranoid").
  absl::StatusOr<int64_t> SysctlInt(absl::string_view name) const;
  // Whatever else of a process; the path begins with root().
  absl::StatusOr<std::string> Perform(int32_t pid, const SlowRead& read) const;

 private:
  absl::StatusOr<std::string> ReadFile(absl::string_view relative, size_t limit) const;
  absl::StatusOr<std::string> ReadSlowly(int32_t pid, absl::string_view file, SlowRead::What what,
                                         size_t limit) const;

  std::string root_;
  std::shared_ptr<SlowFiles> slow_;
};

// By ReadExecutableMaps.
absl::StatusOr<std::vector<MapEntry>> ExecutableMaps(const ProcFs& procfs, int32_t pid);
// Memory of a process, all of it or an error.
absl::StatusOr<std::string> MemoryOf(const ProcFs& procfs, int32_t pid, const FilePart& part);
// What its user has written, by its path as the process sees it.
absl::StatusOr<ForeignFile> FileOfUser(const ProcFs& procfs, int32_t pid, uint32_t uid,
                                       const WholeFile& file);
// What a process is called in its own name space of pids.
absl::StatusOr<int32_t> InnerPid(const ProcFs& procfs, int32_t pid);

}  // namespace perfd::agent

#endif  // AGENT_PROCFS_PROCFS_H_
