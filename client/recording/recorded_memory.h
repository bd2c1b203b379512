// client/recording/recorded_memory.h - a recording of perf -> what its samples say about memory.
//
// Shape    SummarizeMemory reads it to its end.
// Errors   as Recording; one that is damaged amid its records gives what came before, and `damage` says how it ended.
#ifndef CLIENT_RECORDING_RECORDED_MEMORY_H_
#define CLIENT_RECORDING_RECORDED_MEMORY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/analysis/memory/memory_figures.h"
#include "core/perfdata/recording.h"

namespace perfd::client {

struct EventMemory {
  std::string name;  // "event 2" where none is told
  bool by_frequency = false;
  uint64_t rate = 0;               // its period, or its frequency in Hz
  uint64_t samples = 0;            // that it has
  uint64_t accesses = 0;           // of them: those that tell of an access
  uint32_t latency_threshold = 0;  // cycles: faster loads are not seen; 0: none is known
};

struct ProcessMemory {
  int32_t pid = 0;
  std::string name;  // empty: not told
  uint64_t threads = 0;
  MemoryProfile profile{};
};

struct RecordedMemory {
  RecordingFacts facts{};
  RecordingCounts counts{};
  absl::Status damage;
  std::vector<EventMemory> events;
  std::vector<ProcessMemory> processes;  // with accesses; most first
  MemoryFigures figures{};
};

// Each may be empty.
struct RecordingObserver {
  std::function<void(uint64_t records)> progress;  // how many there were, now and then
  std::function<void(const std::string& event, const Sample& sample)>
      access;  // each that tells of one
};

RecordedMemory SummarizeMemory(Recording& recording, const RecordingObserver& observer);

}  // namespace perfd::client

#endif  // CLIENT_RECORDING_RECORDED_MEMORY_H_
