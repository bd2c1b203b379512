#include "agent/shadow/forking/cgroup_memory.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "agent/procfs/read_file.h"
#include "agent/shadow/forking/cgroup_folders.h"

namespace perfd {
namespace {

// Version 1 has no word for "none": PAGE_COUNTER_MAX pages, a little less than 2^63 bytes.
constexpr uint64_t kNoLimit = uint64_t{1} << 62;

void Consider(std::optional<uint64_t> limit, std::optional<uint64_t> current,
              CgroupMemory* memory) {
  if (!limit || !current || *limit >= kNoLimit) return;
  const uint64_t room = *limit - std::min(*limit, *current);
  if (memory->limit && *memory->limit - std::min(*memory->limit, memory->current) <= room) return;
  memory->limit = limit;
  memory->current = *current;
}

bool OomWaits(const std::string& folder) {
  auto text = ReadWholeFile(folder + "/memory.oom_control", 4096);
  return text.ok() && absl::StrContains(*text, "oom_kill_disable 1");
}

}  // namespace

CgroupMemory ReadCgroupMemory(const ProcFs& procfs, int32_t pid) {
  CgroupMemory memory;
  for (const auto& [folder, unified] : FoldersOf(procfs, pid, "memory")) {
    if (unified) {
      if (ReadNumber(folder + "/memory.oom.group").value_or(0) == 1) memory.oom_group = true;
      Consider(ReadNumber(folder + "/memory.max"), ReadNumber(folder + "/memory.current"), &memory);
    } else {
      if (OomWaits(folder)) memory.oom_waits = true;
      Consider(ReadNumber(folder + "/memory.limit_in_bytes"),
               ReadNumber(folder + "/memory.usage_in_bytes"), &memory);
    }
  }
  return memory;
}

CgroupMemory ReadCgroupMemory(int32_t pid) {
  return ReadCgroupMemory(ProcFs(), pid);
}

}  // namespace perfd
