#include "agent/shadow/forking/memory_areas.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/procfs/read_file.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr size_t kMostText = 16 << 20;
constexpr size_t kMostFlags = 64;

std::optional<uint64_t> Kb(absl::string_view value) {
  uint64_t number = 0;
  value = absl::StripAsciiWhitespace(value);
  if (!absl::ConsumeSuffix(&value, " kB") || !absl::SimpleAtoi(value, &number)) return std::nullopt;
  if (number > (UINT64_MAX >> 10)) return std::nullopt;
  return number << 10;
}

struct Figure {
  const char* key;
  uint64_t MemoryArea::*value;
};
constexpr Figure kFigures[] = {{"Rss", &MemoryArea::resident},
                               {"Private_Dirty", &MemoryArea::private_dirty},
                               {"Anonymous", &MemoryArea::anonymous},
                               {"AnonHugePages", &MemoryArea::huge},
                               {"Private_Hugetlb", &MemoryArea::private_hugetlb}};

// What a fork leaves out altogether ("dc") faults by itself. Source: kernel/fork.c dup_mmap, mm/userfaultfd.c dup_userfaultfd.
struct ForkFlag {
  const char* flag;
  WhyProtected why;
};
constexpr ForkFlag kForkFlags[] = {
    {"wf", WhyProtected::kEmptyInForks},  {"um", WhyProtected::kPagedByOthers},
    {"ui", WhyProtected::kPagedByOthers}, {"io", WhyProtected::kDevice},
    {"pf", WhyProtected::kDevice},
};

// The kernel's own pages, which clocks are read from, are marked as devices are.
bool IsKernelPage(const MapEntry& map) {
  return absl::StartsWith(map.path, "[v");
}

void ReadLine(absl::string_view key, absl::string_view value, MemoryArea& area) {
  for (const Figure& figure : kFigures) {
    if (key == figure.key) area.*figure.value = Kb(value).value_or(0);
  }
  if (key != "VmFlags") return;
  for (absl::string_view flag : absl::StrSplit(value, ' ', absl::SkipWhitespace())) {
    if (area.flags.size() < kMostFlags) area.flags.emplace_back(flag);
  }
}

}  // namespace

bool MemoryArea::HasFlag(absl::string_view flag) const {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

absl::StatusOr<std::vector<MemoryArea>> ParseMemoryAreas(absl::string_view smaps) {
  std::vector<MemoryArea> areas;
  for (absl::string_view line : absl::StrSplit(smaps, '\n', absl::SkipEmpty())) {
    const absl::string_view first = line.substr(0, line.find(' '));
    if (absl::EndsWith(first, ":")) {
      if (areas.empty()) return absl::InvalidArgumentError("smaps: a figure of no mapping");
      ReadLine(absl::StripSuffix(first, ":"), line.substr(first.size()), areas.back());
      continue;
    }
    ASSIGN_OR_RETURN(std::vector<MapEntry> maps, ParseMaps(line));
    if (maps.size() != 1) return absl::InvalidArgumentError("smaps: no mapping in its line");
    areas.emplace_back().map = std::move(maps[0]);
  }
  return areas;
}

absl::StatusOr<std::vector<MemoryArea>> ReadMemoryAreas(int32_t pid) {
  ASSIGN_OR_RETURN(std::string text,
                   ReadWholeFile(absl::StrCat("/proc/", pid, "/smaps"), kMostText));
  return ParseMemoryAreas(text);
}

MemoryFacts SumResident(std::span<const MemoryArea> areas) {
  MemoryFacts facts;
  for (const MemoryArea& area : areas) {
    facts.resident += area.resident;
    facts.private_dirty += area.private_dirty;
    facts.anonymous += area.anonymous;
    facts.huge += area.huge;
    facts.private_hugetlb += area.private_hugetlb;
  }
  return facts;
}

std::vector<ForkedDifferently> DiffersInFork(std::span<const MemoryArea> areas) {
  std::vector<ForkedDifferently> found;
  for (const MemoryArea& area : areas) {
    if (IsKernelPage(area.map)) continue;
    for (const ForkFlag& flag : kForkFlags) {
      if (!area.HasFlag(flag.flag)) continue;
      found.push_back({{area.map.start, area.map.end}, flag.why});
      break;
    }
  }
  return found;
}

}  // namespace perfd::agent
