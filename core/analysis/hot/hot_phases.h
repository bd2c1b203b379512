// core/analysis/hot/hot_phases.h - which loops a profile measures from now on, when the program goes from phase to phase.
//
// Shape    NextPhase(heat now, what was decided before) -> what is decided now. The first set is that of hot_set.h. A loop
//          is taken up when it is among the hot ones of the last kRecentNs, or still warm and among those of the whole
//          profile; it gives its place back when it was cold for kColdNs, or for kPressedNs when another needs the place.
// Bounds   at most max_loops at a time, at most most_loops in all; each comes back at most kMostReturns times.
// Units    heat in ns of CPU time; ns of any steady clock; shares of the recent CPU time of all compute loops, 0..1. How much
//          is known is counted in samples.
// Threads  thread-safe (pure).
// Source   our choice. The share to come in is far above the share to go out, and going out takes time: a loop whose share
//          wavers around either edge changes its place once. kRecentNs holds two windows of the longest kind (5 s).
#ifndef CORE_ANALYSIS_HOT_HOT_PHASES_H_
#define CORE_ANALYSIS_HOT_HOT_PHASES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/analysis/hot/until_known.h"
#include "core/model/measure_order.h"

namespace perfd {

inline constexpr int64_t kRecentNs = 10'000'000'000;
inline constexpr int64_t kColdNs = 15'000'000'000;
inline constexpr int64_t kPressedNs = 5'000'000'000;
inline constexpr double kEnterShare = 0.05;    // of a loop that is hot now
inline constexpr double kReenterShare = 0.02;  // of one that is hot over the whole profile
inline constexpr double kLeaveShare = 0.01;    // below: cold
inline constexpr uint64_t kLeastRecent = 100;  // samples; with fewer nothing is decided
inline constexpr uint64_t kLeastOwn = 10;      // samples of a loop that comes in
inline constexpr int32_t kMostReturns = 3;
inline constexpr int32_t kMostSites =
    32;  // a rank has no room for more (agent/shadow/protocol.h, kMaxSites)

// How hot one compute loop of the job is.
struct LoopHeat {
  std::string id;               // LocationId
  uint64_t whole_ns = 0;        // since the profile began
  uint64_t recent_ns = 0;       // in the last kRecentNs
  uint64_t recent_samples = 0;  // seen then
  bool settled =
      false;  // measured or refused wherever it was asked for: it needs no place any more
};

struct HeatedLoop {
  MeasureLoop loop;  // what an agent needs to find it
  LoopHeat heat;
  LoopLearning knowledge = {};
};

// A loop that is, or was, measured.
struct PhaseLoop {
  std::string id;
  bool active = true;
  int64_t cold_since_ns = 0;  // 0: it is not cold
  int32_t returns = 0;

  bool operator==(const PhaseLoop&) const = default;
};

struct PhaseLimits {
  double coverage_ratio = 0.8;
  int32_t max_loops = 12;
};

// Over the whole profile: max_loops, and room for two more phases as long as a rank has room for them.
int32_t MostLoops(int32_t max_loops);

struct PhaseStep {
  std::vector<PhaseLoop> loops;       // those from before in their order, then new ones
  std::vector<std::string> taken;     // anew, or again
  std::vector<std::string> given_up;  // for others, or because they are cold
};

// `heat` holds every compute loop, in any fixed order; loops it does not know are cold.
PhaseStep NextPhase(std::span<const LoopHeat> heat, std::vector<PhaseLoop> before,
                    const PhaseLimits& limits, int64_t now_ns);

}  // namespace perfd

#endif  // CORE_ANALYSIS_HOT_HOT_PHASES_H_
