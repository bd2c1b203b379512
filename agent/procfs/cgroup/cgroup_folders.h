// agent/procfs/cgroup/cgroup_folders.h - which folders of which control groups limit a process, version 1 and 2.
//
// Shape    mountinfo and /proc/PID/cgroup name the folders, from the process's own group up to the top. Parsers are pure
//          (foreign bytes).
// Errors   none: what cannot be read does not limit.
// Source   cgroups(7), proc(5) mountinfo, Documentation/admin-guide/cgroup-v2.rst.
#ifndef AGENT_PROCFS_CGROUP_CGROUP_FOLDERS_H_
#define AGENT_PROCFS_CGROUP_CGROUP_FOLDERS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/procfs/procfs.h"

namespace perfd::agent {

// A mounted hierarchy of a controller: "memory", "pids".
struct GroupHierarchy {
  std::string directory;
  std::string root;  // the group that `directory` shows
  std::string controller;
  bool unified = false;  // version 2

  bool operator==(const GroupHierarchy&) const = default;
};

std::vector<GroupHierarchy> ParseHierarchies(absl::string_view mountinfo,
                                             absl::string_view controller);
// The process's own group first, the top of the mount last; none: its groups are not in this mount.
std::vector<std::string> GroupFolders(const GroupHierarchy& hierarchy,
                                      std::span<const CgroupEntry> groups);

struct GroupFolder {
  std::string path;
  bool unified = false;
};
std::vector<GroupFolder> FoldersOf(const ProcFs& procfs, int32_t pid, absl::string_view controller);

}  // namespace perfd::agent

#endif  // AGENT_PROCFS_CGROUP_CGROUP_FOLDERS_H_
