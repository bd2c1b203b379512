// core/analysis/jobs/history.h - a report cut down to what its history needs, and the same loop found in many profiles.
//
// Shape    ToHistory(report). LoopsOverTime(profiles, oldest first): a loop is the same as one of an earlier profile when the
//          ids are, else when function, file and first line are, else when each is the only unmatched loop of that function,
//          module and depth (another build moved its lines).
// Limits   kMaxHistoryLoops of each profile; kMaxSeries series, those with the largest share anywhere.
// Threads  thread-safe (pure).
// Source   matching: as client/render/report_diff.h, here along a chain of profiles.
#ifndef CORE_ANALYSIS_JOBS_HISTORY_H_
#define CORE_ANALYSIS_JOBS_HISTORY_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/analysis/jobs/change_point.h"
#include "core/model/history.h"

namespace perfd {

inline constexpr size_t kMaxSeries = 200;

HistoryProfile ToHistory(const Report& report);

// Base name of the executable that most ranks ran, else what the request named; empty: neither is known.
std::string ProgramOf(const Report& report);

enum class HistoryQuantity { kShare, kWallShare, kCyclesPerIteration, kCyclesPerEntry };

// Of CPU time or of elapsed time.
bool IsShare(HistoryQuantity quantity);

// One loop through the profiles.
struct LoopSeries {
  // As long as the profiles; null where the profile has not this loop. Into the profiles, which must outlive the series.
  std::vector<const HistoryLoop*> loops;
  const HistoryLoop* newest = nullptr;  // the last that is not null
  double largest_share = 0;
  // What was compared over time: cycles where enough profiles have them, else the share, which is of elapsed time where all
  // profiles tell that.
  HistoryQuantity quantity = HistoryQuantity::kShare;
  std::vector<size_t> at;  // the profiles that `points` are of
  std::vector<LevelPoint> points;
  LevelChange change;  // `since` counts points
};

// Of elapsed time only where every loop of every profile has it: like is compared with like.
ShareBasis CommonBasis(std::span<const HistoryProfile> profiles);
HistoryShare ShareOf(const HistoryLoop& loop, ShareBasis basis);

// Largest share first.
std::vector<LoopSeries> LoopsOverTime(std::span<const HistoryProfile> profiles);

}  // namespace perfd

#endif  // CORE_ANALYSIS_JOBS_HISTORY_H_
