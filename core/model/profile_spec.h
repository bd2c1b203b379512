// core/model/profile_spec.h - what a user asks for: the parsed job.yaml.
//
// Shape    plain values; every member has the default that `perfctl explain` prints.
// Source   design: job.yaml.
#ifndef CORE_MODEL_PROFILE_SPEC_H_
#define CORE_MODEL_PROFILE_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace perfd {

// Which processes. Exactly one of slurm_job, command and pids is set.
struct TargetSpec {
  std::optional<uint32_t> slurm_job;   // all steps of this Slurm job
  std::optional<std::string> command;  // base name of the executable
  std::vector<int32_t> pids;
  bool tree = false;  // with pids: all that run below them, too, now and as they start
  std::string user;   // with command: only this user's processes; empty: the requester's own
  std::string node;   // only this node; empty: every node (with pids: the client's own node)

  bool operator==(const TargetSpec&) const = default;
};

struct RankRange {
  int32_t first = 0;
  int32_t last = 0;  // inclusive

  bool operator==(const RankRange&) const = default;
};

struct BudgetSpec {
  double overhead_ratio = 0.02;     // added wall time / elapsed time, 0..0.5
  int64_t stop_ns = 20'000'000;     // longest stop of a rank
  int64_t shadow_ns = 500'000'000;  // longest pause for one shadow

  bool operator==(const BudgetSpec&) const = default;
};

enum class CallPaths {
  kOff,
  kFramePointer,
  kDwarf,
  kAuto,  // a few, and short ones: they tell which loops call what, and are not kept
};

struct HotspotSpec {
  std::string event = "auto";  // auto, cpu-clock, or any event name libpfm4 knows
  int32_t frequency_hz = 199;  // per thread, 1..10000
  double coverage_ratio = 0.8;
  int32_t max_loops = 12;
  CallPaths callpaths = CallPaths::kAuto;

  bool operator==(const HotspotSpec&) const = default;
};

struct VariantSpec {
  std::vector<std::string> set = {"LS",     "FP",  "DL1",      "NO_DIV", "NO_SQRT",
                                  "NO_RED", "S2L", "NO_STORE", "CTRL"};
  int32_t repetitions = 31;
  // "shadow", or "recovery": short loops that provably end and store nothing run in the rank itself, where the site allows it.
  std::string mode = "shadow";

  bool recovery() const { return mode == "recovery"; }
  bool operator==(const VariantSpec&) const = default;
};

struct MemorySpec {
  int32_t latency_threshold_cycles = 30;
  bool dtlb = true;
  std::string trace = "auto";  // auto, off

  bool operator==(const MemorySpec&) const = default;
};

struct PagesSpec {
  bool enabled = true;
  bool apply = false;

  bool operator==(const PagesSpec&) const = default;
};

inline constexpr int64_t kLongestUntilKnownNs = 600'000'000'000;
// Where a profile has to have a fixed length, and none is given: presets of a hook, a perfd that knows no other.
inline constexpr int64_t kFixedDurationNs = 60'000'000'000;

struct ProfileSpec {
  std::string name;
  TargetSpec target;
  std::vector<RankRange> ranks;  // empty: all
  // How long to sample: at most so long when `until_known`.
  int64_t duration_ns = kLongestUntilKnownNs;
  // perfd ends the profile as soon as every hot loop is known (core/analysis/hot/until_known.h).
  bool until_known = true;
  BudgetSpec budget;
  HotspotSpec hotspots;
  VariantSpec variants;
  MemorySpec memory;
  bool coherence_enabled = true;
  PagesSpec pages;
  // Only say what would be altered: the job is sampled for a short look, its loops are prepared, nothing is injected. No key
  // of job.yaml: the same file serves the dry run and the profile.
  bool dry_run = false;

  bool operator==(const ProfileSpec&) const = default;
};

// What a hook asks for unless its policy says more: a job is not to be measured for as long as it takes.
inline ProfileSpec FixedLengthSpec() {
  ProfileSpec spec;
  spec.duration_ns = kFixedDurationNs;
  spec.until_known = false;
  return spec;
}

// True when `rank` is selected by `ranks` (empty selects all).
inline bool SelectsRank(const std::vector<RankRange>& ranks, int32_t rank) {
  if (ranks.empty()) return true;
  for (const RankRange& range : ranks) {
    if (rank >= range.first && rank <= range.last) return true;
  }
  return false;
}

}  // namespace perfd

#endif  // CORE_MODEL_PROFILE_SPEC_H_
