#include "agent/discover/tree/process_tree.h"

#include <algorithm>
#include <set>

namespace perfd::agent {

ProcessTree::ProcessTree(const std::vector<ProcessLink>& links) {
  for (const ProcessLink& link : links) {
    links_[link.pid] = link;
    children_[link.parent_pid].push_back(link.pid);
  }
}

const ProcessLink* ProcessTree::Find(int32_t pid) const {
  const auto found = links_.find(pid);
  return found == links_.end() ? nullptr : &found->second;
}

ProcessTree::Part ProcessTree::Below(const std::vector<int32_t>& roots, size_t most) const {
  std::vector<int32_t> order;  // nearest to the roots first; also the queue
  std::set<int32_t> seen;      // pids are reused while /proc is read: there may be a cycle
  Part part;
  const auto add = [&](int32_t pid) {
    if (!seen.insert(pid).second) return;
    if (order.size() < most)
      order.push_back(pid);
    else
      part.cut = true;
  };
  for (const int32_t root : roots) add(root);
  for (size_t i = 0; i < order.size() && !part.cut; ++i) {
    const auto children = children_.find(order[i]);
    if (children == children_.end()) continue;
    for (const int32_t child : children->second) add(child);
  }
  part.pids = std::move(order);
  std::sort(part.pids.begin(), part.pids.end());
  return part;
}

std::vector<int32_t> ProcessTree::Descendants(int32_t pid, size_t most) const {
  std::vector<int32_t> pids = Below({pid}, most + 1).pids;
  std::erase(pids, pid);
  return pids;
}

ProcessTree ReadProcessTree(const ProcFs& procfs) {
  std::vector<ProcessLink> links;
  for (const int32_t pid : procfs.Pids().value_or(std::vector<int32_t>())) {
    const absl::StatusOr<ProcessStamp> stamp = procfs.Stamp(pid);
    if (!stamp.ok() || stamp->state == 'Z' || stamp->state == 'X' || stamp->exit_signal == 0)
      continue;
    links.push_back({pid, stamp->parent_pid, stamp->start_ticks});
  }
  return ProcessTree(links);
}

}  // namespace perfd::agent
