// core/model/loop_verdict.h - what the variants of one loop say about the whole job, for the report.
//
// Shape    made from the LoopMeasurements of all ranks by core/analysis/job_verdict.h. A distribution over ranks is shown
//          as minimum, median and maximum of whole ranks: the median is the figure of one rank, never a mean.
// Units    saturations T(V) / T(base); gains are shares of the job's time, 0..1; cycles of the TSC per instance.
// Source   verdicts: Bendifallah 2015, Algorithm 2; gain = share x (1 - Sat): ibid., ROI.
#ifndef CORE_MODEL_LOOP_VERDICT_H_
#define CORE_MODEL_LOOP_VERDICT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/loop_measurement.h"

namespace perfd {

// What the loop waits for.
enum class Bound {
  kUnknown,      // LS or FP was not measured or did not count, or the figures are too noisy
  kMemory,       // LS far above FP
  kArithmetic,   // FP far above LS
  kBalanced,     // both near REF: neither hides the other
  kUnsaturated,  // both well below REF: dependences between them, or the front end
  kOverhead,     // the control alone takes as long as the loop
  kWithinL1,     // weaker: LS or FP did not count, but DL1 shows that no memory beyond L1 limits it
};
inline constexpr int kBoundCount = 7;
const char* BoundName(Bound bound);
// A full verdict; the others contradict none.
bool IsDefinite(Bound bound);

// Where the data are, by DL1.
enum class DataLevel { kUnknown, kL1, kL2, kBeyondL2 };
const char* DataLevelName(DataLevel level);

// Why there is no verdict, although something may have been measured.
enum class Silence {
  kNone,              // there is one, or nothing was measured (yet)
  kLsDidNotCount,     // LS was tried, and no run counts
  kFpDidNotCount,     // the same of FP
  kFewRuns,           // too few to say how far their median may be off
  kTooNoisy,          // within its own scatter of the edge, but the scatter is too large to say so
  kTakesNothingAway,  // FP keeps every access, and DL1 says nothing
  kPartlyChanged,     // what a variant had to keep could turn the verdict
  kFidelity,          // the shadow ran at another speed than the loop does in the program
  kContradictory,     // no loop has such figures
  kSharedLines,       // threads share lines, which cost another time in a shadow than live
  kRanksDiffer,       // no name has most of the ranks
  kMemoryChain,       // passes wait for each other through memory, which variants take away
};
inline constexpr int kSilenceCount = 12;
const char* SilenceName(Silence silence);  // "" of kNone

struct VariantSummary {
  std::string variant;
  std::string base;
  // Of the median rank, with its own interval; where some ranks have no figure, with that of a rank that was not measured.
  Ratio saturation;
  double rank_min = 0;
  double rank_max = 0;
  std::string min_rank;  // "rank 3 on node17"
  std::string max_rank;
  MeasuredRanks ranks;  // that have a valid figure
  uint64_t valid_runs = 0;
  uint64_t invalid_runs = 0;
  uint64_t shadows = 0;
  double cycles = 0;  // median instance of the median rank
  EditCounts edits;   // of the median rank

  bool operator==(const VariantSummary&) const = default;
};

// What a fix would be worth at most.
struct Gain {
  std::string variant;
  std::string name;  // "perfect cache", "no division", ...
  Ratio of_job;      // share of the slowest rank's time x (1 - Sat)
  MeasuredRanks ranks = {};

  bool operator==(const Gain&) const = default;
};

// What is said of instances of like length.
struct ClassVerdict {
  Bound bound = Bound::kUnknown;
  bool sure = false;
  Silence why = Silence::kNone;  // of an unknown bound

  bool operator==(const ClassVerdict&) const = default;
};

// Short and long instances of one rank, each judged with what is known of that rank.
struct TripVerdicts {
  std::vector<TripClass> classes;
  std::vector<ClassVerdict> verdicts;  // as many; none: of a perfd that does not tell
  std::string rank;                    // which one

  bool operator==(const TripVerdicts&) const = default;
};

// One rank in the drill-down. The listings of its measurement are in LoopVerdict::listings.
struct RankVerdict {
  Bound bound = Bound::kUnknown;
  std::string outlier;           // why it differs from the other ranks; empty: it does not
  Silence why = Silence::kNone;  // of an unknown bound
  LoopMeasurement measurement;

  bool operator==(const RankVerdict&) const = default;
};

struct LoopVerdict {
  std::string loop_id;
  std::string location_key;
  MeasureState state = MeasureState::kOpen;
  Bound bound = Bound::kUnknown;  // of most ranks
  bool sure = false;              // no value within the intervals gives another verdict
  Silence why = Silence::kNone;   // of an unknown bound
  DataLevel level = DataLevel::kUnknown;
  std::string agreement;     // "all 8 ranks agree", "5 of 8 ranks memory bound"
  double share = 0;          // of the job's time, with the loops inside, which copies hold as well
  double slowest_share = 0;  // of the slowest rank's own time, likewise
  std::string slowest_rank;  // the rank that gains refer to
  uint32_t ranks_measured = 0;
  uint32_t ranks_total = 0;  // that were asked
  std::vector<VariantSummary> variants;
  std::vector<Gain> gains;           // largest first
  std::vector<std::string> remarks;  // coherence, interactions, outliers, in sentences
  TripVerdicts trips;                // of one rank: the one that gains refer to, if it has any
  Fidelity fidelity;                 // of the median rank
  std::string protocol;
  std::vector<Refusal> refusals;  // merged over ranks; count: runs
  std::vector<std::string> open;  // variants that some rank still lacks
  InjectionCost cost;             // summed over ranks; the longest of any rank
  PredictedCost
      predicted;  // of a dry run: one shadow on every node (core/analysis/injection_forecast.h)
  std::vector<VariantListing> listings;
  std::vector<RankVerdict> ranks;  // by rank, node, pid; outliers always
  uint64_t ranks_left_out = 0;     // of `ranks`, by the report's limits

  bool operator==(const LoopVerdict&) const = default;
};

// What all injections of a profile cost.
struct InjectionTotal {
  InjectionCost sum;  // over ranks and loops; the longest of any
  // Wall time added to the job: pauses and stops, those that are known to overlap counted once, and the largest
  // estimate of any rank for later faults and pass-through.
  int64_t added_wall_ns = 0;
  double added_ratio = 0;  // of the profile's elapsed time
  // Pauses of several nodes that overlapped, and are in added_wall_ns only once (core/analysis/job_pauses.h).
  int64_t shared_ns = 0;
  uint64_t pauses_lost = 0;  // records of leased pauses that were not kept: they count in full

  bool operator==(const InjectionTotal&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_LOOP_VERDICT_H_
