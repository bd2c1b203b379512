// core/model/window.h - a few seconds of one profile on one node, reduced to counts.
//
// Shape    threads and locations are dictionaries of this window alone; rows refer to them by index.
//          A window explains itself: no other window is needed to read it.
// Units    times in ns; weight in ns of CPU time (cpu-clock) or in events.
#ifndef CORE_MODEL_WINDOW_H_
#define CORE_MODEL_WINDOW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/accounting.h"
#include "core/model/code.h"
#include "core/model/identity.h"
#include "core/model/loop_measurement.h"
#include "core/model/memory/window_memory.h"
#include "core/model/pause_lease.h"
#include "core/model/provenance.h"

namespace perfd {

struct WindowThread {
  int32_t rank = 0;
  int32_t pid = 0;
  int32_t tid = 0;

  bool operator==(const WindowThread&) const = default;
};

struct WindowRow {
  uint32_t thread = 0;    // index into Window::threads
  uint32_t location = 0;  // index into Window::locations
  uint64_t samples = 0;
  uint64_t weight = 0;  // sum of the sample periods
  // Of the rank's elapsed time: each moment is divided equally among its threads that compute. 0 without Window::rank_times.
  uint64_t wall_ns = 0;

  bool operator==(const WindowRow&) const = default;
};

// How long a rank, with its children, lived in this window.
struct RankTime {
  int32_t rank = 0;
  int32_t pid = 0;
  uint64_t elapsed_ns = 0;
  uint64_t cpu_wait_ns = 0;  // its threads wanted a CPU and had none, summed over them

  bool operator==(const RankTime&) const = default;
};

// One call path, outermost frame first, with the rank it was seen in.
struct WindowStack {
  int32_t rank = 0;
  std::vector<uint32_t> frames;  // indices into WindowPaths::frame_names
  uint64_t samples = 0;

  bool operator==(const WindowStack&) const = default;
};

// Call paths that began in one place outside compute loops, by the innermost compute loop that had called it.
struct WindowCall {
  uint32_t location = 0;         // where they began; index into Window::locations
  std::optional<uint32_t> loop;  // index into Window::locations; none: called by no loop
  uint64_t paths = 0;

  bool operator==(const WindowCall&) const = default;
};

struct WindowPaths {
  std::vector<std::string> frame_names;
  std::vector<WindowStack> stacks;
  std::vector<WindowCall> calls;  // a path that ends before a loop was found is of none

  bool operator==(const WindowPaths&) const = default;
};

// The samples were taken with this.
struct SamplingSetup {
  std::string event;        // as opened, e.g. "cpu-clock" or "cycles:u (precise 2)"
  double frequency_hz = 0;  // in force in this window, after the governor
  bool kernel_included = false;
  std::string method;  // "per-thread" or "cgroup"
  Provenance provenance = Provenance::kSampled;

  bool operator==(const SamplingSetup&) const = default;
};

// What is told of code beside where the time went: a section for each kind, which the aggregate, the report and their readers know by
// the same name.
struct WindowFindings {
  std::vector<LoopMeasurement> measurements;  // those that changed in this window, each complete
  WindowMemory memory;

  bool operator==(const WindowFindings&) const = default;
};

struct Window {
  std::string profile_id;
  std::string node;
  std::string stream_id;  // spool uuid: with sequence, the window's identity for ever
  uint64_t sequence = 0;  // 1, 2, 3 ... per stream_id, never used twice
  int64_t start_unix_ns = 0;
  int64_t duration_ns = 0;  // by the monotonic clock
  SamplingSetup setup;
  std::vector<RankInfo> ranks;  // ranks first seen or still running in this window
  std::vector<WindowThread> threads;
  std::vector<CodeLocation> locations;
  std::vector<WindowRow> rows;
  WindowPaths paths;
  WindowFindings findings;
  std::vector<AuditEntry> audit;              // injections of this window
  LeasedPauses leased;                        // pauses within windows of the profile's lease
  std::vector<RankTime> rank_times;  // by the agent; empty: it does not divide elapsed time
  Accounting accounting;
  OverheadFigures overhead;

  bool operator==(const Window&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_WINDOW_H_
