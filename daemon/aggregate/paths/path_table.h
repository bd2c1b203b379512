// daemon/aggregate/paths/path_table.h - the call paths of a profile, and which loops had called what ran outside of loops.
//
// Shape    sums: any order gives an equal State(). Each Add tells how many samples found no place of their own.
// Units    samples; places of calls are indices of the owner.
// Limits   see PathLimits. Beyond them a new path is one of the "(other)" of its rank, and a new call is left out.
// Threads  thread-compatible.
#ifndef DAEMON_AGGREGATE_PATHS_PATH_TABLE_H_
#define DAEMON_AGGREGATE_PATHS_PATH_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/model/report.h"
#include "core/model/window.h"

namespace perfd::daemon {

struct OtherStacks {
  int32_t rank = 0;
  uint64_t samples = 0;

  bool operator==(const OtherStacks&) const = default;
};

// Canonical: sorted, without duplicates.
struct PathState {
  std::vector<std::string> frame_names;   // sorted
  std::vector<WindowStack> stacks;        // by rank, frames
  std::vector<OtherStacks> other_stacks;  // by rank
  std::vector<WindowCall> calls;          // by place, then loop

  bool operator==(const PathState&) const = default;
};

struct PathLimits {
  size_t stacks = 100'000;
  size_t frame_names = 100'000;
  size_t ranks = 1'000'000;
  size_t calls = 100'000;
};

class PathTable {
 public:
  explicit PathTable(const PathLimits& limits) : limits_(limits) {}

  uint64_t AddStack(int32_t rank, const std::vector<const std::string*>& frames, uint64_t samples);
  uint64_t AddCall(const WindowCall& call);
  // Stacks of another table; its calls have places of another owner.
  uint64_t AbsorbStacks(const PathState& state);

  // `place`: the new index of each place of the owner.
  PathState State(const std::vector<uint32_t>& place) const;
  // Of memory, about.
  size_t Bytes() const;
  // From now on a new path is one of the "(other)" of its rank.
  void Freeze() {
    limits_.stacks = stacks_.size();
    limits_.frame_names = frame_names_.size();
    limits_.calls = calls_.size();
  }
  std::vector<ReportStack> stacks() const;
  std::vector<WindowCall> calls() const;

 private:
  using StackKey = std::pair<int32_t, std::vector<uint32_t>>;

  void AddOther(int32_t rank, uint64_t samples);

  PathLimits limits_;
  std::vector<std::string> frame_names_;
  absl::flat_hash_map<std::string, uint32_t> frame_index_;
  absl::flat_hash_map<StackKey, uint64_t> stacks_;
  absl::flat_hash_map<int32_t, uint64_t> other_stacks_;                     // by rank
  std::map<std::pair<uint32_t, std::optional<uint32_t>>, uint64_t> calls_;  // by place and loop
};

}  // namespace perfd::daemon

#endif  // DAEMON_AGGREGATE_PATHS_PATH_TABLE_H_
