#include "core/analysis/jobs/change_point.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace perfd {
namespace {

constexpr double kMadToDeviation = 1.4826;  // of a normal distribution
constexpr size_t kManyPoints = 8;           // from here on one may stray

using Points = std::span<const LevelPoint>;

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// Sorting what is not a number has no meaning.
bool AllFinite(Points points) {
  return std::all_of(points.begin(), points.end(), [](const LevelPoint& point) {
    return std::isfinite(point.value) && std::isfinite(point.low) && std::isfinite(point.high);
  });
}

double MedianOf(Points points) {
  std::vector<double> values;
  for (const LevelPoint& point : points) values.push_back(point.value);
  return Median(std::move(values));
}

double Deviations(Points points, double level) {
  double sum = 0;
  for (const LevelPoint& point : points) sum += std::abs(point.value - level);
  return sum;
}

size_t BestSplit(Points points) {
  size_t best = kFewestPerSide;
  double least = std::numeric_limits<double>::infinity();
  for (size_t split = kFewestPerSide; split + kFewestPerSide <= points.size(); ++split) {
    const Points before = points.first(split);
    const Points after = points.subspan(split);
    const double sum = Deviations(before, MedianOf(before)) + Deviations(after, MedianOf(after));
    if (sum >= least) continue;
    least = sum;
    best = split;
  }
  return best;
}

// The lowest lower bound, where there are many points the second lowest; and the same from above.
double Floor(Points points) {
  std::vector<double> lows;
  for (const LevelPoint& point : points) lows.push_back(point.low);
  std::sort(lows.begin(), lows.end());
  return lows[points.size() >= kManyPoints ? 1 : 0];
}

double Ceiling(Points points) {
  std::vector<double> highs;
  for (const LevelPoint& point : points) highs.push_back(point.high);
  std::sort(highs.rbegin(), highs.rend());
  return highs[points.size() >= kManyPoints ? 1 : 0];
}

// How far points stray from their side's level: between profiles, and within each by its interval.
double Noise(Points before, double level_before, Points after, double level_after) {
  std::vector<double> strays, widths;
  for (const LevelPoint& point : before) strays.push_back(std::abs(point.value - level_before));
  for (const LevelPoint& point : after) strays.push_back(std::abs(point.value - level_after));
  for (const Points side : {before, after}) {
    for (const LevelPoint& point : side) widths.push_back((point.high - point.low) / 4);
  }
  return std::max(kMadToDeviation * Median(std::move(strays)), Median(std::move(widths)));
}

}  // namespace

LevelChange FindChange(Points points) {
  LevelChange change;
  if (points.size() < 2 * kFewestPerSide || !AllFinite(points)) return change;
  change.verdict = LevelVerdict::kSteady;
  const size_t split = BestSplit(points);
  const Points before = points.first(split);
  const Points after = points.subspan(split);
  change.before = MedianOf(before);
  change.after = MedianOf(after);
  const double step = change.after - change.before;
  const double noise = Noise(before, change.before, after, change.after);
  const bool large = std::abs(step) > kLeastSteps * noise &&
                     std::abs(step) >= kLeastRatio * std::abs(change.before);
  if (!large) return change;
  if (step > 0 && Floor(after) > Ceiling(before)) change.verdict = LevelVerdict::kUp;
  if (step < 0 && Ceiling(after) < Floor(before)) change.verdict = LevelVerdict::kDown;
  if (change.verdict != LevelVerdict::kSteady) change.since = split;
  return change;
}

}  // namespace perfd
