// core/analysis/trip_classes.h - short and long instances of a loop, judged apart where its trip count varies.
//
// Shape    instances are parted by their counted trips into at most kMostTripClasses quantile classes; equal counts are never
//          parted, and a class of fewer than kLeastInClass instances joins the neighbour that has fewer. None at all when
//          the typical long instance is not kTripSpread times the typical short one.
// Units    trips of the thread that makes most; saturations as in core/analysis/saturation.h, of the team.
// Threads  thread-safe (pure, deterministic).
// Source   classes: design, section 6, step 8 (deciles). The interval of n instances is widened by t(n - 1) / 1.96 x
//          sqrt(n / (n - 1)) (cluster_median.h): 2.7 times for three, 1.9 for four, which is why a class has four.
#ifndef CORE_ANALYSIS_TRIP_CLASSES_H_
#define CORE_ANALYSIS_TRIP_CLASSES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/analysis/saturation.h"
#include "core/analysis/verdict.h"
#include "core/model/loop_measurement.h"

namespace perfd {

inline constexpr size_t kMostTripClasses = 10;
inline constexpr size_t kLeastInClass = 4;
inline constexpr uint64_t kTripSpread = 2;

// The instances are those of the runs whose shadow also ran COUNT; others are in no class. From short to long.
std::vector<TripClass> TripClassesOf(std::span<const RunSample> runs,
                                     const ReduceOptions& options = {});

// Whether it may be worth to see more instances: the longest so far is kTripSpread times the shortest.
bool TripsVary(std::span<const uint64_t> trips);

// Parts of the loop's time, one per class, that add up to 1; all 0 where the times are not known. Instances are drawn by
// counting entries, so each class has them as often as the loop has.
std::vector<double> TimeOfClasses(const std::vector<TripClass>& classes);

// One for each class of `of`, with what is known of that rank: its fidelity, and whether its threads share lines.
std::vector<ClassVerdict> ClassVerdictsOf(const LoopMeasurement& of,
                                          const VerdictEdges& edges = {});

// "the verdict depends on the trip count: overhead bound from 3 to 12 trips, memory bound from 800 to 40000"; empty unless
// two classes have different verdicts that are sure.
std::string TripRemark(const LoopMeasurement& of, const VerdictEdges& edges = {});

// The classes that have most of the time are sure of other names than this one, which is that of the median instance.
bool ClassesContradict(const LoopMeasurement& of, Bound bound, const VerdictEdges& edges = {});

}  // namespace perfd

#endif  // CORE_ANALYSIS_TRIP_CLASSES_H_
