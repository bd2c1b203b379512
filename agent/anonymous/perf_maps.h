// agent/anonymous/perf_maps.h - the perf maps of processes that make code as they run, read when they are needed.
//
// Shape    Learn(process, uid, addresses) reads the map again where it lacks some of them; At tells what an address is called.
//          ReadPerfMap finds the file; production gives it as the port `read`.
// Errors   none: code without a name has none. ReadPerfMap: kFailedPrecondition (older than the process: an earlier one's of
//          the same number), and as agent/procfs/slow_files.h.
// Bounds   kMaxBytes of a map, read at most every kRereadNs of a process, ever more seldom (kSeldomNs) where that names nothing;
//          kMaxProcesses, those that were asked about last.
// Threads  thread-bound; Learn waits for the file as long as a guarded read may take.
#ifndef AGENT_ANONYMOUS_PERF_MAPS_H_
#define AGENT_ANONYMOUS_PERF_MAPS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "agent/anonymous/perf_map.h"
#include "agent/anonymous/process_id.h"
#include "agent/procfs/procfs.h"
#include "core/base/clock.h"

namespace perfd::agent {

class PerfMaps {
 public:
  static constexpr size_t kMaxBytes = size_t{32} << 20;
  static constexpr size_t kMaxProcesses = 16;
  static constexpr int64_t kRereadNs = 5 * kNsPerSecond;
  static constexpr int64_t kSeldomNs = 60 * kNsPerSecond;
  using Read = std::function<absl::StatusOr<std::string>(const ProcessId&, uint32_t uid)>;

  // `read` may be empty: nothing has a name. `clock` outlives this.
  PerfMaps(Read read, const Clock& clock) : read_(std::move(read)), clock_(clock) {}

  void Learn(const ProcessId& process, uint32_t uid, const std::vector<RuntimeAddress>& addresses);
  // Null: not known. Valid until the next Learn.
  const PerfMap::Symbol* At(const ProcessId& process, RuntimeAddress address) const;

 private:
  struct Known {
    PerfMap map;
    int64_t next_read_ns = 0;
    int64_t pause_ns = kRereadNs;
    uint64_t asked = 0;
  };

  const Read read_;
  const Clock& clock_;
  uint64_t asked_ = 0;
  absl::flat_hash_map<ProcessId, Known> known_;
};

absl::StatusOr<std::string> ReadPerfMap(const ProcFs& procfs, const Clock& clock,
                                        const ProcessId& process, uint32_t uid);

}  // namespace perfd::agent

#endif  // AGENT_ANONYMOUS_PERF_MAPS_H_
