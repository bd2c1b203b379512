// core/model/memory/memory_report.h - what a report says of memory: whole job, loop by loop, instruction by instruction.
//
// Units    shares 0..1, each with its 95 % interval; latencies in cycles; weights in what the event counts.
#ifndef CORE_MODEL_MEMORY_MEMORY_REPORT_H_
#define CORE_MODEL_MEMORY_MEMORY_REPORT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/figures/interval.h"
#include "core/model/memory/load_times.h"
#include "core/model/memory/memory_profile.h"
#include "core/model/memory/window_memory.h"

namespace perfd {

enum class NoShare : uint8_t { kNone, kTooFew, kNotTold, kNoLatency };

// Of the time of loads.
struct BeyondShare {
  NoShare why_not = NoShare::kTooFew;  // kNone: there is one
  double share = 0;
  Interval interval{};
  uint64_t samples = 0;          // of loads with a latency that tell
  uint64_t untold = 0;           // the same that do not
  uint64_t without_latency = 0;  // loads that say where they were found, but not how long they took

  bool operator==(const BeyondShare&) const = default;
};

struct MemoryFigures {
  MemoryProfile profile{};
  std::array<BeyondShare, kMemoryBorders> beyond{};

  bool operator==(const MemoryFigures&) const = default;
};

// The accesses of one instruction, of all ranks.
struct MemoryReference {
  ElfAddress instruction = 0;
  MemoryFigures figures{};

  bool operator==(const MemoryReference&) const = default;
};

// Of one process in one place.
struct RankMemory {
  std::string node;
  int32_t rank = 0;
  int32_t pid = 0;
  AccessCount all{};
  AccessCount walks{};  // of all: the DTLB had no entry
  // At L2, without squares: there is no interval.
  uint64_t told = 0;
  uint64_t untold = 0;
  uint64_t without_latency = 0;
  uint64_t told_cycles = 0;
  uint64_t beyond_cycles = 0;
  uint64_t untold_cycles = 0;

  bool operator==(const RankMemory&) const = default;
};

// A loop, or a function outside loops.
struct MemoryPlace {
  std::string id;  // LocationId, as of ReportRow
  std::string function;
  std::string file;  // empty: not known, nor are the lines
  int32_t first_line = 0;
  int32_t last_line = 0;
  bool loop = false;
  MemoryFigures figures{};
  std::vector<MemoryReference> references;  // heaviest first; not all of them
  std::vector<RankMemory> ranks;            // heaviest first; not all of them
  uint64_t references_left_out = 0;
  uint64_t ranks_left_out = 0;

  bool operator==(const MemoryPlace&) const = default;
};

// Accesses that the figures do not tell apart, or lack.
struct MemoryLost {
  uint64_t accesses = 0;           // in no figure at all
  uint64_t without_place = 0;      // these three are in the figures of the job
  uint64_t without_instruction = 0;
  uint64_t without_rank = 0;

  void Merge(const MemoryLost& other);
  bool operator==(const MemoryLost&) const = default;
};

struct MemoryReport {
  std::vector<MemoryEvent> events;
  MemoryFigures job{};
  std::vector<MemoryPlace> places;  // heaviest first
  uint64_t places_left_out = 0;
  MemoryLost lost{};

  bool Any() const { return !events.empty() || job.profile.all.samples > 0; }
  bool operator==(const MemoryReport&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_MEMORY_MEMORY_REPORT_H_
