#include "core/perfdata/process_names.h"

#include "core/base/utf8.h"

namespace perfd {

void ProcessNames::OnTask(const TaskEvent& task) {
  const bool main_thread = task.pid == task.tid;
  if (!task.name.empty() && (main_thread || !names_.contains(task.pid)))
    names_[task.pid] = DisplayForm(task.name);
  if (task.kind != TaskEvent::Kind::kProcessForked) return;
  const auto parent = names_.find(task.parent_pid);
  if (parent != names_.end()) names_[task.pid] = std::string(parent->second);
}

std::string ProcessNames::NameOf(int32_t pid) const {
  const auto it = names_.find(pid);
  return it == names_.end() ? "" : it->second;
}

}  // namespace perfd
