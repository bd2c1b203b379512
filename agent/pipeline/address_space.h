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
#include "core/model/stack.h"

namespace perfd {

class AddressSpace {
 public:
  // Forgets everything and takes the executable entries of a maps file.
  void Replace(const std::vector<MapEntry>& maps);
  // A new mapping hides whatever lay below it, as mmap does.
  void Add(const MappingEvent& event);
  // The mapping that holds `address`, or null. Valid until the next change.
  const CodeMapping* Find(uint64_t address) const;
  size_t size() const { return by_start_.size(); }
  std::vector<CodeMapping> Mappings() const;  // by start
  // Another number after every change of the mappings.
  uint64_t generation() const { return generation_; }

 private:
  void Insert(CodeMapping mapping);

  std::map<uint64_t, CodeMapping> by_start_;  // disjoint
  uint64_t generation_ = 0;
};

}  // namespace perfd

#endif  // AGENT_PIPELINE_ADDRESS_SPACE_H_
