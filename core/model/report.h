// core/model/report.h - the answer: where the time of the job went, loop by loop, rank by rank.
//
// Shape    built by daemon/report from the aggregate, carried by core/wire, drawn by client/render.
// Units    shares are ratios 0..1 of all kept weight; intervals are 95 %.
#ifndef CORE_MODEL_REPORT_H_
#define CORE_MODEL_REPORT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/accounting.h"
#include "core/model/code.h"
#include "core/model/figures/interval.h"
#include "core/model/identity.h"
#include "core/model/loop_verdict.h"
#include "core/model/memory/memory_report.h"
#include "core/model/profile.h"
#include "core/model/window.h"

namespace perfd {

// What shares are of. Of elapsed time each moment of a rank is divided equally among its threads that compute.
enum class ShareBasis { kCpu, kWall };

// Of functions that a loop calls, without the loops inside these, as far as call paths tell.
struct CalledShare {
  double share = 0;
  Interval interval;

  bool operator==(const CalledShare&) const = default;
};

struct WallShare {
  double share = 0;
  Interval interval;
  double inclusive = 0;  // with the loops inside it, and what they call
  CalledShare called = {};

  bool operator==(const WallShare&) const = default;
};

// Of the elapsed time of all ranks. The categories and `waiting` add up to 1.
struct WallTotals {
  std::array<double, kCategoryCount> category_share{};  // indexed by Category
  double waiting_share = 0;     // no thread of the rank computed: it waited, or had nothing to do
  double elapsed_seconds = 0;   // summed over ranks
  double cpu_wait_seconds = 0;  // threads wanted a CPU and had none, summed over threads

  bool operator==(const WallTotals&) const = default;
};

// Part of kKernel, by what the kernel did. These add up to the category's share.
struct KernelShare {
  KernelCause cause = KernelCause::kUnknown;
  uint64_t samples = 0;
  double share = 0;       // of CPU time
  double wall_share = 0;  // of elapsed time, where that is divided

  bool operator==(const KernelShare&) const = default;
};

// Shares of the whole job.
struct TimeTotals {
  double waiting_share = 0;        // waiting loops, of CPU time; part of kLibrary
  std::optional<WallTotals> wall;  // none: some agent does not divide elapsed time
  std::vector<KernelShare>
      kernel;  // heaviest first; each cause once, those without samples not at all

  // Of the order of loops, the hot set and gains.
  ShareBasis basis() const { return wall.has_value() ? ShareBasis::kWall : ShareBasis::kCpu; }
  bool operator==(const TimeTotals&) const = default;
};

// Of the windows with a sample of a row, since the first window with any sample; by the wall clocks of the nodes. Both 0: not
// known.
struct SeenSpan {
  int64_t first_ns = 0;  // begin of the first
  int64_t last_ns = 0;   // end of the last

  bool operator==(const SeenSpan&) const = default;
};

struct RankShare {
  std::string node;
  int32_t rank = 0;
  uint64_t samples = 0;
  double seconds = 0;  // CPU seconds in this place; samples / frequency when weights are events
  double share_of_rank = 0;       // of that rank's own time
  double wall_share_of_rank = 0;  // of its elapsed time, where that is divided

  bool operator==(const RankShare&) const = default;
};

struct ThreadShare {
  ThreadKey thread;
  uint64_t samples = 0;
  double share_of_thread = 0;

  bool operator==(const ThreadShare&) const = default;
};

// CPU seconds in one place.
struct RankSeconds {
  double min = 0;
  double median = 0;
  double max = 0;

  bool operator==(const RankSeconds&) const = default;
};

// One loop, or one function outside loops.
struct ReportRow {
  std::string id;  // LocationId
  CodeLocation location;
  uint64_t samples = 0;
  double share = 0;  // of CPU time
  Interval share_interval;
  std::optional<WallShare> wall;  // of elapsed time
  double inclusive_share = 0;     // with the loops inside it, and what they call
  CalledShare called;             // of CPU time
  bool hot = false;  // member of the hot set (innermost, heaviest first, until `coverage`)
  RankSeconds rank_seconds;
  std::string worst_rank;  // "rank 3 on node17"; empty with one rank
  double imbalance = 1;    // max / mean over the ranks' seconds
  int32_t thread_count = 0;
  SeenSpan seen;
  std::vector<RankShare> ranks;
  std::vector<ThreadShare> threads;

  bool operator==(const ReportRow&) const = default;
};

struct RankSummary {
  RankInfo info;
  uint64_t samples = 0;
  double seconds = 0;          // CPU seconds seen
  double compute_seconds = 0;  // without waiting loops, runtimes and kernel
  int32_t threads = 0;
  bool ended_early = false;
  // Where elapsed time is divided, else 0.
  double elapsed_seconds = 0;
  double compute_wall_seconds = 0;  // of that, without waiting, runtimes and kernel
  double cpu_wait_seconds = 0;      // its threads wanted a CPU and had none, summed over them

  bool operator==(const RankSummary&) const = default;
};

struct NodeCoverage {
  std::string node;
  uint64_t windows = 0;
  int64_t covered_ns = 0;
  SamplingSetup setup;  // of the last window; frequency is the mean

  bool operator==(const NodeCoverage&) const = default;
};

struct ReportStack {
  int32_t rank = 0;
  std::vector<std::string> frames;  // outermost first
  uint64_t samples = 0;

  bool operator==(const ReportStack&) const = default;
};

// What was found about code beside where the time went: a section for each kind, as in WindowFindings.
struct ReportFindings {
  std::vector<LoopVerdict> verdicts;  // measured and refused loops, largest gain first
  InjectionTotal injection;
  MemoryReport memory;

  bool operator==(const ReportFindings&) const = default;
};

struct Report {
  ProfileStatus status;
  std::vector<ReportRow> loops;                         // compute loops, heaviest first
  std::vector<ReportRow> waiting;                       // loops of runtimes
  std::vector<ReportRow> functions;                     // places outside loops
  std::array<double, kCategoryCount> category_share{};  // indexed by Category; sums to 1 (or all 0)
  std::array<uint64_t, kCategoryCount> category_samples{};
  TimeTotals time;
  std::vector<RankSummary> ranks;
  std::string worst_rank;  // the rank with the most compute seconds
  double imbalance = 1;    // max / mean of compute seconds
  std::vector<NodeCoverage> nodes;
  std::vector<ReportStack> stacks;
  Accounting accounting;
  OverheadFigures overhead;
  double overhead_ratio = 0;  // (kernel_sampling + stop) / job CPU time
  double missing_ratio = 0;   // (lost + dropped by us) / (seen + lost)
  Provenance provenance = Provenance::kSampled;
  ReportFindings findings;

  bool operator==(const Report&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_REPORT_H_
