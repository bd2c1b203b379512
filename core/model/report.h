// core/model/report.h - the answer: where the time of the job went, loop by loop, rank by rank.
//
// Shape    built by daemon/report from the aggregate, carried by core/wire, drawn by client/render.
// Units    shares are ratios 0..1 of all kept weight; intervals are 95 %.
#ifndef CORE_MODEL_REPORT_H_
#define CORE_MODEL_REPORT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/accounting.h"
#include "core/model/code.h"
#include "core/model/identity.h"
#include "core/model/loop_verdict.h"
#include "core/model/profile.h"
#include "core/model/window.h"

namespace perfd {

struct Interval {
  double low = 0;
  double high = 0;

  bool operator==(const Interval&) const = default;
};

struct RankShare {
  std::string node;
  int32_t rank = 0;
  uint64_t samples = 0;
  double seconds = 0;  // CPU seconds in this place; samples / frequency when weights are events
  double share_of_rank = 0;  // of that rank's own time

  bool operator==(const RankShare&) const = default;
};

struct ThreadShare {
  ThreadKey thread;
  uint64_t samples = 0;
  double share_of_thread = 0;

  bool operator==(const ThreadShare&) const = default;
};

// One loop, or one function outside loops.
struct ReportRow {
  std::string id;  // LocationId
  CodeLocation location;
  uint64_t samples = 0;
  double share = 0;
  Interval share_interval;
  double inclusive_share = 0;  // with the loops inside it; equals share for innermost loops
  bool hot = false;  // member of the hot set (innermost, heaviest first, until `coverage`)
  double rank_min_seconds = 0;
  double rank_median_seconds = 0;
  double rank_max_seconds = 0;
  std::string worst_rank;  // "rank 3 on node17"; empty with one rank
  double imbalance = 1;    // max / mean over the ranks' seconds
  int32_t thread_count = 0;
  // Begin of the first window with a sample of it and end of the last, since the first window with any sample; by the wall
  // clocks of the nodes. Both 0: not known.
  int64_t first_seen_ns = 0;
  int64_t last_seen_ns = 0;
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

struct Report {
  ProfileStatus status;
  std::vector<ReportRow> loops;                         // compute loops, heaviest first
  std::vector<ReportRow> waiting;                       // loops of runtimes
  std::vector<ReportRow> functions;                     // places outside loops
  std::array<double, kCategoryCount> category_share{};  // indexed by Category; sums to 1 (or all 0)
  std::array<uint64_t, kCategoryCount> category_samples{};
  double waiting_share = 0;  // part of kLibrary
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
  std::vector<LoopVerdict> verdicts;  // measured and refused loops, largest gain first
  InjectionTotal injection;

  bool operator==(const Report&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_REPORT_H_
