// agent/pipeline/raw_window.h - the counts of one window before their addresses are understood.
//
// Shape    WindowBuilder counts samples by (thread, module, file offset or address); Drain() hands over a RawWindow and starts anew.
// Units    file offsets in bytes; times in ns.
// Threads  thread-compatible.
// Loss     a window holds at most kMaxRawRows different (thread, place) pairs of kMaxRawThreads threads; samples of later
//          new ones are counted as queue_full. At most kMaxRawStacks call paths; later new ones: stack_skipped.
#ifndef AGENT_PIPELINE_RAW_WINDOW_H_
#define AGENT_PIPELINE_RAW_WINDOW_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "agent/anonymous/process_id.h"
#include "agent/pipeline/module_kind.h"
#include "agent/pipeline/raw/raw_location.h"
#include "agent/pipeline/raw/raw_memory.h"
#include "agent/wall/process_time.h"
#include "agent/wall/wall_times.h"
#include "core/model/stack.h"
#include "core/model/window.h"

namespace perfd::agent {

// Not more than the daemon takes (core/wire/check/limits.h): a window that it refuses would be sent again for ever.
inline constexpr size_t kMaxRawRows = 1'000'000;
inline constexpr size_t kMaxRawThreads = 65'536;
inline constexpr size_t kMaxRawStacks = 1 << 14;
// Some 100 ms to look through; of more samples the first ones tell who computes together.
inline constexpr size_t kMaxRawMoments = 1 << 17;

// Which file, told apart as the kernel does.
struct ModuleKey {
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  std::string path;
  int32_t process = 0;  // of code that is not mapped from a file: whose

  bool operator==(const ModuleKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const ModuleKey& k) {
    return H::combine(std::move(h), k.device_major, k.device_minor, k.inode, k.path, k.process);
  }
};

// The file whose code was moved.
struct MovedFrom {
  FileNeighbour beside;
  ModuleKind kind = ModuleKind::kProgram;  // of the file
};

// A module of a raw window, with one process and mapping through which its bytes can be read.
struct RawModule {
  ModuleKey key;
  ModuleKind kind = ModuleKind::kLibrary;
  int32_t pid = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  RuntimeAddress map_start = 0;
  RuntimeAddress map_end = 0;
  ProcessId process{};                            // of code that is not mapped from a file
  std::optional<MovedFrom> moved = std::nullopt;  // with kMoved

  // Its locations are run-time addresses, not offsets in a file.
  bool IsAnonymous() const { return kind == ModuleKind::kAnonymous || kind == ModuleKind::kMoved; }
};

// Of whose address space a mapping is.
struct ModuleOwner {
  int32_t pid = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t start_ticks = 0;
  uint32_t image = 0;
  absl::string_view executable;
};
RawModule ModuleOf(const ModuleOwner& owner, const CodeMapping& mapping);

struct RawRow {
  uint32_t thread = 0;
  RawLocation location;
  uint64_t samples = 0;
  uint64_t weight = 0;
};

struct RawStack {
  int32_t rank = 0;
  std::vector<RawLocation> frames;  // innermost first
  uint64_t samples = 0;
};

// When a sample was taken.
struct RawMoment {
  uint64_t time_ns = 0;
  uint32_t row = 0;  // index into RawWindow::rows
};

// What elapsed time is divided by.
struct WallEvidence {
  std::vector<RawMoment> moments;
  std::vector<ProcessTime> processes;
  double period_ns =
      0;  // of CPU time between two samples of a thread while events are on; 0: not known
  std::shared_ptr<WallTimes>
      times;  // of the session, for the resolver's thread alone; null: not divided
};

// As WindowFindings.
struct RawFindings {
  std::vector<LoopMeasurement> measurements;
  RawMemory memory;
};

struct RawWindow {
  std::vector<RawModule> modules;
  std::vector<WindowThread> threads;
  std::vector<RawRow> rows;
  std::vector<RawStack> stacks;
  Accounting accounting;
  OverheadFigures overhead;
  SamplingSetup setup;
  std::vector<RankInfo> ranks;
  RawFindings findings;
  std::vector<AuditEntry> audit;
  LeasedPauses leased;
  WallEvidence wall;
  int64_t start_unix_ns = 0;
  int64_t duration_ns = 0;
};

class WindowBuilder {
 public:
  // The index of a module in the current window.
  uint32_t Module(const RawModule& module);
  // False: there was no room. time_ns 0: not known.
  bool Count(const WindowThread& thread, const RawLocation& location, uint64_t period,
             uint64_t time_ns = 0);
  void CountStack(int32_t rank, std::vector<RawLocation> frames);
  Accounting& accounting() { return accounting_; }
  MemoryCounter& memory() { return memory_; }
  // Everything counted since the last Drain; times, setup, ranks and overhead are left for the caller.
  RawWindow Drain();

 private:
  struct Key {
    uint32_t thread;
    RawLocation location;
    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.thread, k.location);
    }
  };
  struct Counts {
    uint32_t row = 0;
    uint64_t samples = 0;
    uint64_t weight = 0;
  };
  uint32_t Thread(const WindowThread& thread);

  std::vector<RawModule> modules_;
  absl::flat_hash_map<ModuleKey, uint32_t> module_index_;
  std::vector<WindowThread> threads_;
  absl::flat_hash_map<int32_t, uint32_t> thread_index_;
  absl::flat_hash_map<Key, Counts> counts_;
  std::vector<RawMoment> moments_;
  absl::flat_hash_map<std::pair<int32_t, std::vector<RawLocation>>, uint64_t> stacks_;
  MemoryCounter memory_;
  Accounting accounting_;
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_RAW_WINDOW_H_
