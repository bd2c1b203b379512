// core/perfdata/recording_facts.h - what a recording says about itself, beside its records.
//
// Errors   none: what a recording does not say is empty or 0. All of it is foreign text.
// Source   tools/perf/Documentation/perf.data-file-format.txt.
#ifndef CORE_PERFDATA_RECORDING_FACTS_H_
#define CORE_PERFDATA_RECORDING_FACTS_H_

#include <linux/perf_event.h>

#include <cstdint>
#include <string>
#include <vector>

namespace perfd {

struct RecordedEvent {
  std::string name;  // empty: not told
  perf_event_attr attr{};
  std::vector<uint64_t> ids;
};

struct RecordedModule {
  int32_t pid = 0;       // -1: of every process
  std::string build_id;  // raw bytes
  std::string path;
};

struct RecordedNumaNode {
  uint32_t id = 0;
  uint64_t memory_kib = 0;
  std::string cpus;  // as "0-27,56-83"
};

struct RecordedCache {
  uint32_t level = 0;
  uint32_t line_bytes = 0;
  uint32_t sets = 0;
  uint32_t ways = 0;
  std::string type;  // "Data", "Unified", ...
  std::string size;  // as "32K"
  std::string cpus;
};

struct RecordingFacts {
  std::string host;
  std::string machine;  // as uname -m
  std::string cpu;
  std::string command;
  uint32_t cpus_online = 0;
  uint64_t memory_kib = 0;
  uint64_t first_ns = 0;  // of its samples; 0: not told
  uint64_t last_ns = 0;
  std::vector<RecordedModule> modules;
  std::vector<RecordedNumaNode> numa_nodes;
  std::vector<RecordedCache> caches;
};

}  // namespace perfd

#endif  // CORE_PERFDATA_RECORDING_FACTS_H_
