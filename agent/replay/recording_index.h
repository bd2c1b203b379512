// agent/replay/recording_index.h - one pass over a recording: what there is to replay.
//
// Shape    IndexRecording(path) -> RecordingIndex; the file is read to its end.
// Errors   as core/perfdata/recording.h; kNotFound: it has no samples; kUnimplemented: they have no times, or such as cannot be. Damage amid the records ends it there, and is said.
// Bounds   kMostProcesses; samples of others are counted.
// Threads  thread-safe (pure but for the reading).
#ifndef AGENT_REPLAY_RECORDING_INDEX_H_
#define AGENT_REPLAY_RECORDING_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/memory/window_memory.h"
#include "core/perfdata/recording.h"

namespace perfd::agent {

struct RecordedProcess {
  int32_t pid = 0;
  std::string command;  // empty: not told
  uint64_t samples = 0;
  std::set<int32_t> threads;
};

// An event, and what became of it.
struct ReplayedEvent {
  std::string name;
  perf_event_attr attr{};
  uint64_t samples = 0;
  uint64_t accesses = 0;  // of them: those that tell of an access to memory
};

struct RecordingIndex {
  static constexpr size_t kMostProcesses = 65'536;

  RecordingFacts facts;
  std::vector<ReplayedEvent> events;
  std::vector<RecordedProcess> processes;  // by samples, most first; not the kernel's own
  uint64_t further_samples = 0;            // of processes beyond the bound
  uint64_t first_ns = UINT64_MAX;          // of its samples
  uint64_t last_ns = 0;
  absl::Status damage;
  size_t time_event = 0;  // TimeEvent()

  // Whose samples say where time went: of those that have a tenth of the most samples one that tells of no access to memory, and of
  // such the one with most.
  size_t TimeEvent() const;
  std::vector<MemoryEvent> MemoryEvents() const;
};

absl::StatusOr<RecordingIndex> IndexRecording(const std::string& path);

}  // namespace perfd::agent

#endif  // AGENT_REPLAY_RECORDING_INDEX_H_
