#include "agent/shadow/injection.h"

namespace perfd::agent {

TextIdentity IdentityOf(const MapEntry& map) {
  // Anonymous mappings grow together with their neighbours, and have no other name than an address.
  const uint64_t bias = map.inode == 0 ? 0 : map.start - map.file_offset;
  return {map.path, map.inode, map.device_major, map.device_minor, bias};
}

const MapEntry* FindMapping(const std::vector<MapEntry>& maps, uint64_t address) {
  for (const MapEntry& map : maps) {
    if (address >= map.start && address < map.end) return &map;
  }
  return nullptr;
}

}  // namespace perfd::agent
