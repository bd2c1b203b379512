#include "core/model/module.h"

namespace perfd {

std::optional<uint64_t> VirtualAddress(const ModuleFacts& module, uint64_t file_offset) {
  for (const ModuleSegment& segment : module.segments) {
    if (file_offset >= segment.file_offset && file_offset - segment.file_offset < segment.file_size)
      return segment.virtual_address + (file_offset - segment.file_offset);
  }
  return std::nullopt;
}

}  // namespace perfd
