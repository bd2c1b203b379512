#include "agent/pipeline/address_space.h"

#include <utility>

namespace perfd {

void AddressSpace::Replace(const std::vector<MapEntry>& maps) {
  const std::map<uint64_t, CodeMapping> before = std::exchange(by_start_, {});
  const uint64_t generation = generation_;
  for (const MapEntry& entry : maps) {
    if (!entry.executable || entry.end <= entry.start) continue;
    Insert({.start = entry.start,
            .end = entry.end,
            .file_offset = entry.file_offset,
            .device_major = entry.device_major,
            .device_minor = entry.device_minor,
            .inode = entry.inode,
            .path = entry.path});
  }
  generation_ = generation + (by_start_ == before ? 0 : 1);
}

void AddressSpace::Add(const MappingEvent& event) {
  if (event.length == 0 || event.start + event.length < event.start) return;
  Insert({.start = event.start,
          .end = event.start + event.length,
          .file_offset = event.file_offset,
          .device_major = event.device_major,
          .device_minor = event.device_minor,
          .inode = event.inode,
          .path = event.path});
}

std::vector<CodeMapping> AddressSpace::Mappings() const {
  std::vector<CodeMapping> mappings;
  mappings.reserve(by_start_.size());
  for (const auto& [start, mapping] : by_start_) mappings.push_back(mapping);
  return mappings;
}

void AddressSpace::Insert(CodeMapping mapping) {
  ++generation_;
  auto it = by_start_.upper_bound(mapping.start);
  if (it != by_start_.begin() && std::prev(it)->second.end > mapping.start) --it;
  while (it != by_start_.end() && it->second.start < mapping.end) {
    CodeMapping old = std::move(it->second);
    it = by_start_.erase(it);
    if (old.end > mapping.end) {  // keep the tail
      CodeMapping tail = old;
      tail.file_offset += mapping.end - old.start;
      tail.start = mapping.end;
      it = by_start_.emplace(tail.start, std::move(tail)).first;
    }
    if (old.start < mapping.start) {  // keep the head
      old.end = mapping.start;
      by_start_.emplace(old.start, std::move(old));
    }
  }
  const uint64_t start = mapping.start;
  by_start_.insert_or_assign(start, std::move(mapping));
}

const CodeMapping* AddressSpace::Find(uint64_t address) const {
  auto it = by_start_.upper_bound(address);
  if (it == by_start_.begin()) return nullptr;
  const CodeMapping& mapping = std::prev(it)->second;
  return address < mapping.end ? &mapping : nullptr;
}

}  // namespace perfd
