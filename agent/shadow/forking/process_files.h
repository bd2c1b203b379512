// agent/shadow/forking/process_files.h - what /proc says about a rank that decides whether and at what cost it may be forked.
//
// Shape    parsers are pure (foreign bytes); Read* read once.
// Units    bytes, unless the name says otherwise.
// Errors   kNotFound: the process is gone. CheckShadow: as it says.
// Source   proc(5): fdinfo, status (NSpid), meminfo, stat (minflt); cgroup v2 memory.*;
//          accounted: mm/mmap.c data_vm and stack_vm, kernel/fork.c dup_mmap (VM_ACCOUNT).
#ifndef AGENT_SHADOW_FORKING_PROCESS_FILES_H_
#define AGENT_SHADOW_FORKING_PROCESS_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/procfs/admission.h"

namespace perfd::agent {

// "Name:   123 kB" lines -> bytes; lines of another shape are skipped.
absl::flat_hash_map<std::string, uint64_t> ParseKbLines(absl::string_view text);

struct MemoryFacts {
  uint64_t resident = 0;
  uint64_t private_dirty = 0;
  uint64_t anonymous = 0;
  uint64_t huge = 0;  // AnonHugePages
  uint64_t private_hugetlb = 0;
  uint64_t page_tables = 0;  // VmPTE
  uint64_t pinned = 0;       // VmPin
  uint64_t accounted = 0;    // VmData + VmStk: what a fork commits anew, touched or not
};

// What the kernel counts as it goes: no walk.
struct MemoryCounts {
  uint64_t anonymous = 0;    // RssAnon
  uint64_t hugetlb = 0;      // HugetlbPages
  uint64_t page_tables = 0;  // VmPTE
  uint64_t pinned = 0;       // VmPin
  uint64_t accounted = 0;    // VmData + VmStk
};
absl::StatusOr<MemoryCounts> ReadMemoryCounts(int32_t pid);

struct NodeMemory {
  uint64_t available = 0;
  uint64_t commit_limit = 0;
  uint64_t committed = 0;
  int64_t overcommit = 0;  // vm.overcommit_memory
};
absl::StatusOr<NodeMemory> ReadNodeMemory();

// Minor faults of the whole process so far.
absl::StatusOr<uint64_t> ReadMinorFaults(int32_t pid);

// As the process sees itself: the last number of the NSpid line. `levels` counts the name spaces.
struct NamespacePid {
  int32_t inner = 0;
  int32_t levels = 1;
};
absl::StatusOr<NamespacePid> ParseNamespacePid(absl::string_view status_text);
absl::StatusOr<NamespacePid> ReadNamespacePid(int32_t pid);
// The process of this node that the children of `parent` call `inner`; kNotFound when there is none.
absl::StatusOr<int32_t> FindChild(int32_t parent, int32_t inner);
// The number of a shadow is in memory that the rank may write to: a child that has executed another program, or runs with other rights,
// is kPermissionDenied. Asked after whatever was read of it, for an exec gives a child its exit signal back for good.
absl::Status CheckShadow(const Admission& rank, int32_t parent, int32_t child);

struct OpenFile {
  int32_t number = 0;
  std::string target;  // of the link: "/dev/nvidia0", "anon_inode:[userfaultfd]"
  uint64_t flags = 0;  // O_ bits
};
// At most 4096; more is kResourceExhausted.
absl::StatusOr<std::vector<OpenFile>> ReadOpenFiles(int32_t pid);

std::string BootId();

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_FORKING_PROCESS_FILES_H_
