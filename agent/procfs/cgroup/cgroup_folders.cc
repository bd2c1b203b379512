#include "agent/procfs/cgroup/cgroup_folders.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/procfs/read_file.h"

namespace perfd::agent {
namespace {

constexpr size_t kMostMounts = 4 << 20;  // bytes of mountinfo
constexpr int kMostLevels = 64;

bool HasItem(absl::string_view list, absl::string_view wanted) {
  for (absl::string_view item : absl::StrSplit(list, ',')) {
    if (item == wanted) return true;
  }
  return false;
}

// Blanks and such are written as \040: proc(5).
std::string Unescaped(absl::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    auto digit = [&](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      out += static_cast<char>((text[i + 1] - '0') << 6 | (text[i + 2] - '0') << 3 |
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::vector<GroupHierarchy> ParseHierarchies(absl::string_view mountinfo,
                                             absl::string_view controller) {
  std::vector<GroupHierarchy> found;
  for (absl::string_view line : absl::StrSplit(mountinfo, '\n')) {
    const std::pair<absl::string_view, absl::string_view> halves =
        absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    const std::vector<absl::string_view> where = absl::StrSplit(halves.first, ' ');
    const std::vector<absl::string_view> what = absl::StrSplit(halves.second, ' ');
    if (where.size() < 5 || what.size() < 3) continue;
    const bool unified = what[0] == "cgroup2";
    if (!unified && (what[0] != "cgroup" || !HasItem(what[2], controller))) continue;
    found.push_back({Unescaped(where[4]), Unescaped(where[3]), std::string(controller), unified});
  }
  return found;
}

std::vector<std::string> GroupFolders(const GroupHierarchy& hierarchy,
                                      std::span<const CgroupEntry> groups) {
  for (const CgroupEntry& group : groups) {
    const bool this_one =
        hierarchy.unified ? group.hierarchy == 0 : HasItem(group.controllers, hierarchy.controller);
    if (!this_one) continue;
    absl::string_view below = group.path;
    if (hierarchy.root != "/" && !absl::ConsumePrefix(&below, hierarchy.root)) return {};
    if (!below.empty() && below[0] != '/') return {};  // "/job12" is not below "/job1"
    if (absl::StrContains(absl::StrCat(below, "/"), "/../")) return {};
    std::vector<std::string> folders;
    for (int level = 0; level < kMostLevels; ++level) {
      below = absl::StripSuffix(below, "/");
      folders.push_back(absl::StrCat(hierarchy.directory, below));
      if (below.empty()) break;
      below = below.substr(0, below.rfind('/'));
    }
    return folders;
  }
  return {};
}

std::vector<GroupFolder> FoldersOf(const ProcFs& procfs, int32_t pid,
                                   absl::string_view controller) {
  std::vector<GroupFolder> folders;
  const auto mountinfo = ReadWholeFile(procfs.root() + "/self/mountinfo", kMostMounts);
  const auto groups = procfs.Cgroups(pid);
  if (!mountinfo.ok() || !groups.ok()) return folders;
  for (const GroupHierarchy& hierarchy : ParseHierarchies(*mountinfo, controller)) {
    for (std::string& path : GroupFolders(hierarchy, *groups))
      folders.push_back({std::move(path), hierarchy.unified});
  }
  return folders;
}

}  // namespace perfd::agent
