// What /proc says about a process's memory: smaps, mountinfo and cgroup paths, smaps_rollup. Names in them are the user's.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "agent/procfs/cgroup/cgroup_folders.h"
#include "agent/shadow/forking/process_files.h"
#include "agent/shadow/forking/task_room.h"
#include "agent/shadow/forking/trimmed_fork.h"
#include "agent/shadow/protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace perfd::agent;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  (void)ParseKbLines(text);
  const std::vector<CgroupEntry> groups = {{3, "memory", std::string(text.substr(0, 64))},
                                           {0, "", std::string(text.substr(0, 64))}};
  (void)ParseTaskLimit(text);
  for (const GroupHierarchy& hierarchy : ParseHierarchies(text, "memory")) {
    for (const std::string& folder : GroupFolders(hierarchy, groups)) {
      if (folder.compare(0, hierarchy.directory.size(), hierarchy.directory) != 0) abort();
    }
  }
  const auto areas = ParseMemoryAreas(text);
  if (!areas.ok() || areas->size() > 1000) return 0;
  (void)JudgeTrim(*areas, {}, 0);
  for (const bool whole : {false, true}) {
    const Footprint footprint{{{size, size << 20}}, whole};
    const TrimmedFork trimmed_fork =
        ChooseTrim(*areas, footprint, {{{size << 12, size << 22}}, {size << 24, ~uint64_t{0}}});
    if (trimmed_fork.ranges.size() > kMaxTrims) abort();
    for (const PcRange& range : trimmed_fork.ranges) {
      bool inside = false;
      for (const MemoryArea& area : *areas)
        inside = inside || (area.map.start <= range.start && range.end <= area.map.end);
      if (!inside || range.start >= range.end) abort();
    }
    (void)Trimmed({}, trimmed_fork);
  }
  return 0;
}
