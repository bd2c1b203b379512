// core/model/memory/window_memory.h - what a window tells of sampled accesses to memory: by process, place and instruction.
//
// Shape    rows refer to the locations of their window by index.
// Units    see memory_profile.h and load_times.h.
#ifndef CORE_MODEL_MEMORY_WINDOW_MEMORY_H_
#define CORE_MODEL_MEMORY_WINDOW_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/address.h"
#include "core/model/memory/load_times.h"
#include "core/model/memory/memory_profile.h"

namespace perfd {

// What accesses were sampled with.
struct MemoryEvent {
  std::string name;
  uint32_t latency_threshold = 0;  // cycles: faster loads are not seen; 0: none is known

  bool operator==(const MemoryEvent&) const = default;
  auto operator<=>(const MemoryEvent&) const = default;  // NOLINT(modernize-use-nullptr)
};

// The accesses that one instruction of one process made.
struct MemoryRow {
  int32_t rank = 0;
  int32_t pid = 0;
  uint32_t location = 0;       // index into Window::locations
  ElfAddress instruction = 0;  // 0: not known
  MemoryProfile profile{};
  LoadTimes times{};

  bool operator==(const MemoryRow&) const = default;
};

struct WindowMemory {
  std::vector<MemoryEvent> events;
  std::vector<MemoryRow> rows;
  uint64_t lost = 0;  // accesses for which there was no row

  bool operator==(const WindowMemory&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_MEMORY_WINDOW_MEMORY_H_
