#include "core/model/module.h"

namespace perfd {

std::optional<ElfAddress> ToElfAddress(const ModuleFacts& module, FileOffset offset) {
  for (const ModuleSegment& segment : module.segments) {
    if (offset >= segment.file_offset && offset - segment.file_offset < segment.file_size)
      return segment.virtual_address + (offset - segment.file_offset);
  }
  return std::nullopt;
}

std::optional<FileOffset> ToFileOffset(const ModuleFacts& module, ElfAddress address) {
  for (const ModuleSegment& segment : module.segments) {
    if (address >= segment.virtual_address && address - segment.virtual_address < segment.file_size)
      return segment.file_offset + (address - segment.virtual_address);
  }
  return std::nullopt;
}

}  // namespace perfd
