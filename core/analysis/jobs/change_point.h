// core/analysis/jobs/change_point.h - did a figure change its level, and since when?
//
// Shape    FindChange(points in the order of time): one lasting step, or none, or too few points to say.
// Model    The step that leaves the least sum of absolute deviations from the medians of both sides, with at least
//          kFewestPerSide points on each. It counts only when both sides are apart: every interval behind it above (below)
//          every one before it (of eight and more, one may stray), and the levels at least kLeastSteps robust deviations
//          and kLeastRatio apart. Profiles differ for more reasons than sampling, so intervals alone would see changes
//          everywhere.
// Units    those of the points.
// Threads  thread-safe (pure).
// Source   least absolute deviations: Bai 1995, "Least absolute deviation estimation of a shift"; median absolute deviation
//          x 1.4826: Rousseeuw and Croux 1993, eq. 1.1-1.2. Rate of false alarms: change_point_test.
#ifndef CORE_ANALYSIS_JOBS_CHANGE_POINT_H_
#define CORE_ANALYSIS_JOBS_CHANGE_POINT_H_

#include <cstddef>
#include <span>

namespace perfd {

inline constexpr size_t kFewestPerSide = 3;
inline constexpr double kLeastSteps = 4;
inline constexpr double kLeastRatio = 0.05;

struct LevelPoint {
  double value = 0;
  double low = 0;
  double high = 0;
};

enum class LevelVerdict { kTooFew, kSteady, kUp, kDown };

struct LevelChange {
  LevelVerdict verdict = LevelVerdict::kTooFew;
  size_t since = 0;   // of kUp, kDown: the first point of the new level
  double before = 0;  // medians
  double after = 0;
};

LevelChange FindChange(std::span<const LevelPoint> points);

}  // namespace perfd

#endif  // CORE_ANALYSIS_JOBS_CHANGE_POINT_H_
