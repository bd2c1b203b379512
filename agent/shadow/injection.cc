#include "agent/shadow/injection.h"

namespace perfd::agent {

TextIdentity IdentityOf(const MapEntry& map) {
  return {map.path, map.inode, map.device_major, map.device_minor, map.start - map.file_offset};
}

const MapEntry* FindMapping(const std::vector<MapEntry>& maps, uint64_t address) {
  for (const MapEntry& map : maps) {
    if (address >= map.start && address < map.end) return &map;
  }
  return nullptr;
}

}  // namespace perfd::agent
