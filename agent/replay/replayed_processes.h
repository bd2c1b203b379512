// agent/replay/replayed_processes.h - what the processes of a recording had mapped, as its records tell it, in the order of time.
//
// Shape    OnMapping, OnTask; Find tells what held an address at that point of the recording.
// Bounds   kMostMappings of all processes that live; what is beyond is not known, and counted. A process that has ended is forgotten
//          when others need the room.
// Threads  thread-compatible.
#ifndef AGENT_REPLAY_REPLAYED_PROCESSES_H_
#define AGENT_REPLAY_REPLAYED_PROCESSES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "agent/pipeline/address_space.h"
#include "agent/pipeline/raw_window.h"
#include "core/perfdata/recording_facts.h"
#include "core/perfdata/records/sample.h"

namespace perfd::agent {

class ReplayedProcesses {
 public:
  static constexpr size_t kMostMappings = size_t{1} << 18;

  void OnMapping(const MappingEvent& mapping);
  void OnTask(const TaskEvent& task);
  // The module that held the address, and where in it. Nothing: not known.
  struct Place {
    RawModule module;
    FileOffset offset;
  };
  std::optional<Place> Find(int32_t pid, RuntimeAddress address, uint64_t time_ns) const;
  uint64_t left_out() const { return left_out_; }  // mappings, and processes

 private:
  struct Process {
    AddressSpace space;
    std::string executable;  // what was mapped first
    size_t mapped = 0;       // records, at most as many mappings
    bool ended = false;
  };
  bool HasRoomFor(size_t mappings);

  absl::flat_hash_map<int32_t, Process> processes_;
  size_t mappings_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace perfd::agent

#endif  // AGENT_REPLAY_REPLAYED_PROCESSES_H_
