#include "agent/pipeline/address_space.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/pipeline/module_kind.h"

namespace perfd::agent {
namespace {

using File = std::tuple<uint32_t, uint32_t, uint64_t>;

File FileOf(const MapEntry& entry) {
  return {entry.device_major, entry.device_minor, entry.inode};
}

std::set<File> ExecutableFiles(const std::vector<MapEntry>& maps) {
  std::set<File> files;
  for (const MapEntry& entry : maps) {
    if (entry.executable && entry.inode != 0) files.insert(FileOf(entry));
  }
  return files;
}

// Shared anonymous memory has an inode of the kernel's own: what it is called in maps is no file, and a device holds no code.
bool IsFile(const MapEntry& entry) {
  return entry.inode != 0 && !absl::StartsWith(entry.path, "/dev/zero") &&
         !absl::StartsWith(entry.path, "/SYSV") && !absl::StartsWith(entry.path, "/anon_hugepage");
}

// A program may copy its code to other pages in the place of the file's own, large ones for example. The file whose
// mappings lie against the anonymous entry `i` on both sides, or on one where the file is nowhere executable; else null.
const MapEntry* FileInWhosePlace(const std::vector<MapEntry>& maps, size_t i,
                                 const std::set<File>& executable) {
  const MapEntry* below = i > 0 && maps[i - 1].end == maps[i].start ? &maps[i - 1] : nullptr;
  const MapEntry* above =
      i + 1 < maps.size() && maps[i + 1].start == maps[i].end ? &maps[i + 1] : nullptr;
  if (below != nullptr && !IsFile(*below)) below = nullptr;
  if (above != nullptr && !IsFile(*above)) above = nullptr;
  if (below != nullptr && above != nullptr && FileOf(*below) == FileOf(*above)) return below;
  for (const MapEntry* file : {below, above}) {
    if (file != nullptr && !executable.contains(FileOf(*file))) return file;
  }
  return nullptr;
}

FileNeighbour NeighbourOf(const MapEntry& entry) {
  return {.start = entry.start,
          .end = entry.end,
          .file_offset = entry.file_offset,
          .device_major = entry.device_major,
          .device_minor = entry.device_minor,
          .inode = entry.inode,
          .path = entry.path};
}

CodeMapping MappingOf(const MapEntry& entry) {
  return {.start = entry.start,
          .end = entry.end,
          .file_offset = entry.file_offset,
          .device_major = entry.device_major,
          .device_minor = entry.device_minor,
          .inode = entry.inode,
          .path = entry.path};
}

}  // namespace

void AddressSpace::Forget(const Held& held, uint64_t until_ns) {
  if (held.since_ns >= until_ns) return;
  past_.push_back({held.mapping, held.since_ns, until_ns});
  past_until_ns_ = std::max(past_until_ns_, until_ns);
  if (past_.size() > kMaxPast) past_.pop_front();
}

void AddressSpace::Replace(const std::vector<MapEntry>& maps, uint64_t read_ns) {
  std::map<RuntimeAddress, Held> before = std::exchange(by_start_, {});
  const uint64_t generation = generation_;
  const std::set<File> executable = ExecutableFiles(maps);
  for (size_t i = 0; i < maps.size(); ++i) {
    if (!maps[i].executable || maps[i].end <= maps[i].start) continue;
    CodeMapping mapping = MappingOf(maps[i]);
    const MapEntry* const file =
        mapping.path.empty() ? FileInWhosePlace(maps, i, executable) : nullptr;
    if (file != nullptr) {
      mapping.path = absl::StrCat(kMovedCode, file->path, "]");
      mapping.beside = NeighbourOf(*file);
    }
    Insert(std::move(mapping), exec_ns_);
  }
  bool changed = by_start_.size() != before.size();
  for (const auto& [start, old] : before) {
    auto it = by_start_.find(start);
    const bool same = it != by_start_.end() && it->second.mapping == old.mapping;
    if (same)
      it->second.since_ns = old.since_ns;
    else
      Forget(old, read_ns);
    changed |= !same;
  }
  generation_ = generation + (changed ? 1 : 0);
}

void AddressSpace::Add(const MappingEvent& event) {
  if (event.length == 0 || event.start + event.length < event.start) return;
  CodeMapping mapping{.start = event.start,
                      .end = event.start + event.length,
                      .file_offset = event.file_offset,
                      .device_major = event.device_major,
                      .device_minor = event.device_minor,
                      .inode = event.inode,
                      .path = event.path};
  if (event.time_ns < exec_ns_)
    Forget({std::move(mapping), event.time_ns}, exec_ns_);
  else
    Insert(std::move(mapping), event.time_ns);
}

void AddressSpace::Exec(uint64_t time_ns) {
  // Also what was read of the new program before its exec was heard of: it is read again.
  for (auto it = by_start_.begin(); it != by_start_.end();) {
    const bool old = it->second.since_ns < time_ns;
    if (old) Forget(it->second, time_ns);
    it = old ? by_start_.erase(it) : std::next(it);
  }
  for (Past& past : past_) {
    if (past.since_ns < time_ns) past.until_ns = std::min(past.until_ns, time_ns);
  }
  exec_ns_ = std::max(exec_ns_, time_ns);
  ++generation_;
}

std::vector<CodeMapping> AddressSpace::Mappings() const {
  std::vector<CodeMapping> mappings;
  mappings.reserve(by_start_.size());
  for (const auto& [start, held] : by_start_) mappings.push_back(held.mapping);
  return mappings;
}

void AddressSpace::Insert(CodeMapping mapping, uint64_t since_ns) {
  ++generation_;
  auto it = by_start_.upper_bound(mapping.start);
  if (it != by_start_.begin() && std::prev(it)->second.mapping.end > mapping.start) --it;
  while (it != by_start_.end() && it->second.mapping.start < mapping.end) {
    Held old = std::move(it->second);
    it = by_start_.erase(it);
    Forget(old, since_ns);
    if (old.mapping.end > mapping.end) {  // keep the tail
      Held tail = old;
      tail.mapping.file_offset += mapping.end - old.mapping.start;
      tail.mapping.start = mapping.end;
      it = by_start_.emplace(tail.mapping.start, std::move(tail)).first;
    }
    if (old.mapping.start < mapping.start) {  // keep the head
      old.mapping.end = mapping.start;
      by_start_.emplace(old.mapping.start, std::move(old));
    }
  }
  const RuntimeAddress start = mapping.start;
  by_start_.insert_or_assign(start, Held{std::move(mapping), since_ns});
}

const CodeMapping* AddressSpace::Find(RuntimeAddress address, uint64_t time_ns) const {
  if (time_ns < past_until_ns_) {
    for (const Past& past : past_) {
      const CodeMapping& mapping = past.mapping;
      if (address >= mapping.start && address < mapping.end && time_ns >= past.since_ns &&
          time_ns < past.until_ns)
        return &mapping;
    }
  }
  auto it = by_start_.upper_bound(address);
  if (it == by_start_.begin()) return nullptr;
  const Held& held = std::prev(it)->second;
  return address < held.mapping.end && time_ns >= held.since_ns ? &held.mapping : nullptr;
}

}  // namespace perfd::agent
