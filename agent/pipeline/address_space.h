// agent/pipeline/address_space.h - the executable mappings of one process, kept up to date by kernel records.
//
// Shape    Replace with /proc/PID/maps, Add for each later mapping record; Find tells what holds an address.
// Units    run-time addresses of the process; file offsets in bytes.
// Threads  thread-compatible.
#ifndef AGENT_PIPELINE_ADDRESS_SPACE_H_
#define AGENT_PIPELINE_ADDRESS_SPACE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/procfs/procfs.h"
#include "agent/sample/sample_source.h"

namespace perfd {

struct CodeMapping {
  uint64_t start = 0;
  uint64_t end = 0;  // exclusive
  uint64_t file_offset = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  std::string path;

  uint64_t FileOffset(uint64_t address) const { return address - start + file_offset; }
  bool operator==(const CodeMapping&) const = default;
};

class AddressSpace {
 public:
  // Forgets everything and takes the executable entries of a maps file.
  void Replace(const std::vector<MapEntry>& maps);
  // A new mapping hides whatever lay below it, as mmap does.
  void Add(const MappingEvent& event);
  // The mapping that holds `address`, or null. Valid until the next change.
  const CodeMapping* Find(uint64_t address) const;
  size_t size() const { return by_start_.size(); }

 private:
  void Insert(CodeMapping mapping);

  std::map<uint64_t, CodeMapping> by_start_;  // disjoint
};

}  // namespace perfd

#endif  // AGENT_PIPELINE_ADDRESS_SPACE_H_
