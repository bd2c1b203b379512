// agent/pipeline/address_space.h - the executable mappings of one process, now and a while ago.
//
// Shape    Replace with the mappings of now, Add for each later mapping record, Exec when it runs another program; Find tells
//          what held an address at the time of a sample: samples are read later than they were taken.
// Units    run-time addresses of the process; file offsets in bytes; times in ns of CLOCK_MONOTONIC.
// Bounds   kMaxPast mappings that are no more are remembered, the latest.
// Threads  thread-compatible.
#ifndef AGENT_PIPELINE_ADDRESS_SPACE_H_
#define AGENT_PIPELINE_ADDRESS_SPACE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "agent/procfs/procfs.h"
#include "agent/sample/sample_source.h"
#include "core/model/stack.h"

namespace perfd::agent {

class AddressSpace {
 public:
  static constexpr size_t kMaxPast = 1024;
  static constexpr uint64_t kNow = UINT64_MAX;

  // ExecutableMaps, read at that time; an anonymous one in the place of a file's code is
  // called after the file (kMovedCode) and says what of it is beside. What is not among them is no more. The new ones have been there since nobody
  // knows when, but not since before an exec.
  void Replace(const std::vector<MapEntry>& maps, uint64_t read_ns);
  // A new mapping hides whatever lay below it, as mmap does.
  void Add(const MappingEvent& event);
  // What was mapped before is no more.
  void Exec(uint64_t time_ns);
  // What held `address` at that time, or null. Valid until the next change.
  const CodeMapping* Find(RuntimeAddress address, uint64_t time_ns = kNow) const;
  size_t size() const { return by_start_.size(); }
  std::vector<CodeMapping> Mappings() const;  // those of now, by start
  // Another number after every change of the mappings.
  uint64_t generation() const { return generation_; }
  uint64_t exec_ns() const { return exec_ns_; }  // of the last one; 0: none was seen

 private:
  struct Held {
    CodeMapping mapping;
    uint64_t since_ns = 0;
  };
  struct Past {
    CodeMapping mapping;
    uint64_t since_ns = 0;
    uint64_t until_ns = 0;
  };
  void Insert(CodeMapping mapping, uint64_t since_ns);
  void Forget(const Held& held, uint64_t until_ns);

  std::map<RuntimeAddress, Held> by_start_;  // disjoint
  std::deque<Past> past_;                    // in the order in which they were found to be gone
  uint64_t past_until_ns_ = 0;               // the latest until_ns
  uint64_t exec_ns_ = 0;
  uint64_t generation_ = 0;
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_ADDRESS_SPACE_H_
