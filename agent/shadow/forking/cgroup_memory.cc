#include "agent/shadow/forking/cgroup_memory.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "agent/procfs/cgroup/cgroup_folders.h"
#include "agent/procfs/read_file.h"

namespace perfd::agent {
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

// What files left in memory and nobody has used of late goes before anybody runs out, and before a rank is slowed down for it.
uint64_t Reclaimable(const std::string& folder, absl::string_view name) {
  constexpr size_t kLongest = 64 << 10;
  auto text = ReadWholeFile(folder + "/memory.stat", kLongest);
  uint64_t bytes = 0;
  if (!text.ok()) return 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> word =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (word.first == name && absl::SimpleAtoi(word.second, &bytes)) return bytes;
  }
  return 0;
}

std::optional<uint64_t> Used(const std::string& folder, const char* file, absl::string_view name) {
  const auto current = ReadNumber(folder + file);
  if (!current) return current;
  return *current - std::min(*current, Reclaimable(folder, name));
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
      const auto used = Used(folder, "/memory.current", "inactive_file");
      Consider(ReadNumber(folder + "/memory.max"), used, &memory);
      Consider(ReadNumber(folder + "/memory.high"), used,
               &memory);  // above it ranks are slowed down
    } else {
      if (OomWaits(folder)) memory.oom_waits = true;
      Consider(ReadNumber(folder + "/memory.limit_in_bytes"),
               Used(folder, "/memory.usage_in_bytes", "total_inactive_file"), &memory);
    }
  }
  return memory;
}

CgroupMemory ReadCgroupMemory(int32_t pid) {
  return ReadCgroupMemory(ProcFs(), pid);
}

}  // namespace perfd::agent
