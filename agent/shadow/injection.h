// agent/shadow/injection.h - everything one needs to know to take perfd out of a rank again.
//
// Shape    a plain value; a journal on disk holds it (journal.h), and the region in the rank holds enough to make it anew.
// Units    run-time addresses.
#ifndef AGENT_SHADOW_INJECTION_H_
#define AGENT_SHADOW_INJECTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "agent/attach/hold_request.h"
#include "agent/procfs/procfs.h"
#include "agent/variant/copy.h"

namespace perfd::agent {

// The mapping that holds patched text: bytes are restored only while it is the same file.
struct TextIdentity {
  std::string path;
  uint64_t inode = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t bias = 0;  // start - file offset; 0 of anonymous memory

  bool operator==(const TextIdentity&) const = default;
};

struct InjectedSite {
  std::string loop_id;
  uint64_t header = 0;
  std::vector<uint8_t> original;
  std::vector<uint8_t> written;
  TextIdentity text;
  std::vector<AddressPair>
      pairs;  // original instruction, its place in a copy that the rank itself runs
};

struct Injection {
  int32_t pid = 0;
  uint64_t start_ticks = 0;
  std::string boot_id;
  PcRange region;
  std::vector<PcRange> caches;
  std::vector<InjectedSite> sites;
};

// nullopt-like default (empty path, inode 0) for anonymous text.
TextIdentity IdentityOf(const MapEntry& map);
const MapEntry* FindMapping(const std::vector<MapEntry>& maps, uint64_t address);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_INJECTION_H_
