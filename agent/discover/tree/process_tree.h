// agent/discover/tree/process_tree.h - who started whom on this node, at one moment.
//
// Shape    ReadProcessTree(procfs) -> ProcessTree, which is pure. Below(roots) -> the roots and all below them.
// Rules    what has ended and waits for its parent (zombie) is not there; nor are shadows (agent/shadow) and kernel threads' kin:
//          whatever ends without a signal to its parent is no program that somebody started.
// Bounds   Below returns `most` processes, those nearest to the roots; `cut` says that there are more.
// Source   proc(5) /proc/PID/stat: ppid (4), exit_signal (38).
#ifndef AGENT_DISCOVER_TREE_PROCESS_TREE_H_
#define AGENT_DISCOVER_TREE_PROCESS_TREE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "agent/procfs/procfs.h"

namespace perfd::agent {

struct ProcessLink {
  int32_t pid = 0;
  int32_t parent_pid = 0;
  uint64_t start_ticks = 0;
};

class ProcessTree {
 public:
  struct Part {
    std::vector<int32_t> pids;  // sorted
    bool cut = false;
  };

  explicit ProcessTree(const std::vector<ProcessLink>& links);

  // Null: not there.
  const ProcessLink* Find(int32_t pid) const;
  Part Below(const std::vector<int32_t>& roots, size_t most) const;
  // Without the process itself.
  std::vector<int32_t> Descendants(int32_t pid, size_t most) const;
  bool HasChildren(int32_t pid) const { return children_.contains(pid); }

 private:
  std::map<int32_t, ProcessLink> links_;
  std::map<int32_t, std::vector<int32_t>> children_;
};

ProcessTree ReadProcessTree(const ProcFs& procfs);

}  // namespace perfd::agent

#endif  // AGENT_DISCOVER_TREE_PROCESS_TREE_H_
