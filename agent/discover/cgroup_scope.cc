#include "agent/discover/cgroup_scope.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/discover/candidate.h"
#include "agent/procfs/process_rights.h"
#include "agent/procfs/read_file.h"

namespace perfd::agent {
namespace {

constexpr int kMaxDepth = 16;
constexpr int kMaxDirectories = 4096;
constexpr size_t kProcsLimit = size_t{4} << 20;

struct Hierarchy {
  std::string mount;
  bool unified = false;
};

bool HasOption(absl::string_view options, absl::string_view wanted) {
  for (absl::string_view option : absl::StrSplit(options, ',')) {
    if (option == wanted) return true;
  }
  return false;
}

// perf takes cgroups of the v1 controller perf_event where that is mounted, else of the unified hierarchy.
std::optional<Hierarchy> PerfHierarchy(const std::vector<MountEntry>& mounts) {
  std::optional<Hierarchy> unified;
  for (const MountEntry& mount : mounts) {
    if (mount.type == "cgroup" && HasOption(mount.options, "perf_event")) {
      return Hierarchy{mount.directory, false};
    }
    if (mount.type == "cgroup2" && !unified) unified = Hierarchy{mount.directory, true};
  }
  return unified;
}

std::string PathIn(const Hierarchy& hierarchy, const std::vector<CgroupEntry>& entries) {
  for (const CgroupEntry& entry : entries) {
    const bool matches =
        hierarchy.unified ? entry.hierarchy == 0 : HasOption(entry.controllers, "perf_event");
    if (matches) return entry.path;
  }
  return {};
}

bool OwnedByJob(const ProcFs& procfs, int32_t pid, uint32_t owner) {
  const absl::StatusOr<ProcessStatus> status = procfs.Status(pid);
  if (absl::IsNotFound(status.status())) return true;  // ended meanwhile: it holds nothing any more
  if (!status.ok()) return false;
  if (status->real_uid == 0 && status->name == "slurmstepd") return true;
  return status->real_uid == owner && CheckPlain(RightsOf(*status), "").ok();
}

// Every process listed in this one directory is the job's.
bool DirectoryIsPure(const ProcFs& procfs, const std::filesystem::path& directory, uint32_t owner) {
  const absl::StatusOr<std::string> text =
      ReadWholeFile((directory / "cgroup.procs").string(), kProcsLimit);
  if (!text.ok()) return absl::IsNotFound(text.status());
  for (absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    int32_t pid = 0;
    // 0 is a process of another pid namespace: nobody we could judge.
    if (!absl::SimpleAtoi(line, &pid) || pid <= 0 || !OwnedByJob(procfs, pid, owner)) return false;
  }
  return true;
}

bool TreeIsPure(const ProcFs& procfs, const std::string& root, uint32_t owner) {
  std::error_code error;
  if (!DirectoryIsPure(procfs, root, owner)) return false;
  int visited = 0;
  std::filesystem::recursive_directory_iterator walk(root, error);
  const std::filesystem::recursive_directory_iterator end;
  for (; !error && walk != end; walk.increment(error)) {
    std::error_code type_error;
    if (!walk->is_directory(type_error) || walk->is_symlink(type_error)) continue;
    if (++visited > kMaxDirectories || walk.depth() > kMaxDepth) return false;
    if (!DirectoryIsPure(procfs, walk->path(), owner)) return false;
  }
  return !error;
}

}  // namespace

std::string JobPart(absl::string_view path, absl::string_view job_id) {
  size_t end = 0;
  for (absl::string_view part : absl::StrSplit(path, '/')) {
    end += part.size();
    absl::string_view id = part;
    if (absl::ConsumePrefix(&id, "job_") && !id.empty() &&
        std::all_of(id.begin(), id.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
        (job_id.empty() || id == job_id)) {
      return std::string(path.substr(0, end));
    }
    ++end;  // the slash
  }
  return {};
}

std::string FindJobCgroup(const ProcFs& procfs, const std::vector<RankInfo>& ranks) {
  const absl::StatusOr<std::vector<MountEntry>> mounts = procfs.Mounts();
  if (ranks.empty() || !mounts.ok()) return {};
  const std::optional<Hierarchy> hierarchy = PerfHierarchy(*mounts);
  if (!hierarchy) return {};
  std::string common;
  for (const RankInfo& rank : ranks) {
    const absl::StatusOr<std::vector<CgroupEntry>> entries = procfs.Cgroups(rank.pid);
    if (!entries.ok() || rank.uid != ranks[0].uid || rank.job_id != ranks[0].job_id) return {};
    const std::string part = JobPart(PathIn(*hierarchy, *entries), rank.job_id);
    if (part.empty() || (!common.empty() && part != common)) return {};
    common = part;
  }
  const std::string directory = absl::StrCat(hierarchy->mount, common);
  return TreeIsPure(procfs, directory, ranks[0].uid) ? directory : std::string();
}

}  // namespace perfd::agent
