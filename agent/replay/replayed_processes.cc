#include "agent/replay/replayed_processes.h"

namespace perfd::agent {

bool ReplayedProcesses::HasRoomFor(size_t mappings) {
  if (mappings_ + mappings > kMostMappings) {
    absl::erase_if(processes_, [this](const auto& item) {
      if (item.second.ended) mappings_ -= item.second.mapped;
      return item.second.ended;
    });
  }
  const bool fits = mappings_ + mappings <= kMostMappings;
  if (!fits) ++left_out_;
  return fits;
}

void ReplayedProcesses::OnMapping(const MappingEvent& mapping) {
  if (mapping.pid <= 0 || !mapping.executable || !HasRoomFor(1)) return;
  Process& process = processes_[mapping.pid];
  if (process.executable.empty() && !mapping.path.empty() && mapping.path.front() == '/')
    process.executable = mapping.path;
  process.space.Add(mapping);
  ++process.mapped;
  ++mappings_;
}

void ReplayedProcesses::OnTask(const TaskEvent& task) {
  const auto it = processes_.find(task.pid);
  switch (task.kind) {
    case TaskEvent::Kind::kProcessForked: {
      const auto parent = processes_.find(task.parent_pid);
      if (parent == processes_.end() || task.pid == task.parent_pid) return;
      Process copy = parent->second;
      copy.ended = false;
      if (it != processes_.end()) {
        mappings_ -= it->second.mapped;
        processes_.erase(it);
      }
      if (!HasRoomFor(copy.mapped)) return;
      mappings_ += copy.mapped;
      processes_.insert_or_assign(task.pid, std::move(copy));
      return;
    }
    case TaskEvent::Kind::kExec:
      if (it == processes_.end()) return;
      it->second.space.Exec(task.time_ns);
      it->second.executable.clear();
      return;
    case TaskEvent::Kind::kExited:
      if (it != processes_.end() && task.pid == task.tid) it->second.ended = true;
      return;
    case TaskEvent::Kind::kThreadStarted:
    case TaskEvent::Kind::kRenamed:
      return;
  }
}

std::optional<ReplayedProcesses::Place> ReplayedProcesses::Find(int32_t pid,
                                                                RuntimeAddress address,
                                                                uint64_t time_ns) const {
  const auto it = processes_.find(pid);
  if (it == processes_.end()) return std::nullopt;
  const CodeMapping* mapping = it->second.space.Find(address, time_ns);
  if (mapping == nullptr) return std::nullopt;
  RawModule module = ModuleOf({.pid = pid, .executable = it->second.executable}, *mapping);
  const FileOffset offset =
      module.IsAnonymous() ? FileOffset(address.value()) : mapping->OffsetOf(address);
  return Place{std::move(module), offset};
}

}  // namespace perfd::agent
