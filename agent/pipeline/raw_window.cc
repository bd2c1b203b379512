#include "agent/pipeline/raw_window.h"

#include <utility>

namespace perfd::agent {

RawModule ModuleOf(const ModuleOwner& owner, const CodeMapping& mapping) {
  RawModule module{
      .key = {mapping.device_major, mapping.device_minor, mapping.inode, mapping.path},
      .kind = ClassifyModule(mapping.path, owner.executable),
      .pid = owner.pid,
      .uid = owner.uid,
      .gid = owner.gid,
      .map_start = mapping.start,
      .map_end = mapping.end,
      .process = {owner.pid, owner.start_ticks, owner.image},
  };
  if (module.IsAnonymous()) module.key.process = owner.pid;
  if (mapping.beside.has_value())
    module.moved = {*mapping.beside, ClassifyModule(mapping.beside->path, owner.executable)};
  return module;
}

uint32_t WindowBuilder::Module(const RawModule& module) {
  auto [it, is_new] = module_index_.try_emplace(module.key, static_cast<uint32_t>(modules_.size()));
  if (is_new) modules_.push_back(module);
  return it->second;
}

uint32_t WindowBuilder::Thread(const WindowThread& thread) {
  auto [it, is_new] = thread_index_.try_emplace(thread.tid, static_cast<uint32_t>(threads_.size()));
  if (is_new) threads_.push_back(thread);
  return it->second;
}

bool WindowBuilder::Count(const WindowThread& thread, const RawLocation& location, uint64_t period,
                          uint64_t time_ns) {
  if (threads_.size() >= kMaxRawThreads && !thread_index_.contains(thread.tid)) {
    accounting_.Drop(DropReason::kQueueFull);
    return false;
  }
  const Key key{Thread(thread), location};
  auto it = counts_.find(key);
  if (it == counts_.end()) {
    if (counts_.size() >= kMaxRawRows) {
      accounting_.Drop(DropReason::kQueueFull);
      return false;
    }
    it = counts_.emplace(key, Counts{.row = static_cast<uint32_t>(counts_.size())}).first;
  }
  ++it->second.samples;
  it->second.weight += period;
  if (time_ns > 0 && moments_.size() < kMaxRawMoments)
    moments_.push_back({time_ns, it->second.row});
  ++accounting_.kept;
  return true;
}

void WindowBuilder::CountStack(int32_t rank, std::vector<RawLocation> frames) {
  if (frames.empty()) return;
  std::pair<int32_t, std::vector<RawLocation>> key{rank, std::move(frames)};
  auto it = stacks_.find(key);
  if (it != stacks_.end()) {
    ++it->second;
  } else if (stacks_.size() < kMaxRawStacks) {
    stacks_.emplace(std::move(key), 1);
  } else {
    ++accounting_.stack_skipped;
  }
}

RawWindow WindowBuilder::Drain() {
  RawWindow window;
  window.modules = std::exchange(modules_, {});
  window.threads = std::exchange(threads_, {});
  window.accounting = std::exchange(accounting_, {});
  window.rows.resize(counts_.size());
  for (const auto& [key, counts] : counts_)
    window.rows[counts.row] = {key.thread, key.location, counts.samples, counts.weight};
  window.wall.moments = std::exchange(moments_, {});
  window.findings.memory = memory_.Drain();
  for (auto& [key, samples] : stacks_) window.stacks.push_back({key.first, key.second, samples});
  module_index_.clear();
  thread_index_.clear();
  counts_.clear();
  stacks_.clear();
  return window;
}

}  // namespace perfd::agent
