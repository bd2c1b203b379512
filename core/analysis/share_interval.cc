#include "core/analysis/share_interval.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace perfd {
namespace {

constexpr double kNormalQuantile = 1.959963984540054;  // 97.5 % of the standard normal

// 97.5 % quantiles of Student's t for 1..30 degrees of freedom; any table of the distribution.
constexpr std::array<double, 30> kStudent = {
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010,  2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796,  2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423};

double Real(absl::uint128 value) {
  return static_cast<double>(value);
}

// Half width by the spread between clusters: R = sum y / sum x, d = y - R x,
// v(R) = n / (n - 1) * sum d^2 / (sum x)^2.
double ClusterHalfWidth(const ClusterSums& sums) {
  const double n = static_cast<double>(sums.clusters);
  const double x = static_cast<double>(sums.x);
  const double ratio = static_cast<double>(sums.y) / x;
  const double squares = Real(sums.yy) - 2 * ratio * Real(sums.xy) + ratio * ratio * Real(sums.xx);
  const double variance = n / (n - 1) * std::max(squares, 0.0) / (x * x);
  return StudentQuantile(sums.clusters - 1) * std::sqrt(variance);
}

}  // namespace

void ClusterSums::Add(uint64_t cluster_x, uint64_t cluster_y, uint64_t each) {
  ++clusters;
  x += cluster_x;
  y += cluster_y;
  xx += absl::uint128(cluster_x) * cluster_x;
  xy += absl::uint128(cluster_x) * cluster_y;
  yy += absl::uint128(cluster_y) * cluster_y;
  ww += absl::uint128(cluster_x) * each;
  ww_y += absl::uint128(cluster_y) * each;
}

double StudentQuantile(uint64_t degrees) {
  if (degrees < 1) degrees = 1;
  if (degrees <= kStudent.size()) return kStudent[degrees - 1];
  const double v = static_cast<double>(degrees);
  const double z = kNormalQuantile;
  const double z2 = z * z;
  return z + z * (z2 + 1) / (4 * v) + z * (5 * z2 * z2 + 16 * z2 + 3) / (96 * v * v);
}

// The variance of p = sum w z / sum w over independent samples, z = 1 in the place and 0 elsewhere, is about
// sum w^2 (z - p)^2 / (sum w)^2 (linearised ratio); that of n equal samples is p (1 - p) / n.
double EffectiveSamples(const ClusterSums& sums) {
  if (sums.x == 0 || sums.ww == 0) return 0;
  const double x = static_cast<double>(sums.x);
  const double p = std::min(1.0, static_cast<double>(sums.y) / x);
  const double q = 1 - p;
  const double elsewhere = std::max(0.0, Real(sums.ww) - Real(sums.ww_y));
  const double squares = q * q * Real(sums.ww_y) + p * p * elsewhere;
  if (!(p * q > 0) || !(squares > 0)) return x * x / Real(sums.ww);  // all or nothing
  return p * q * x * x / squares;
}

Interval WilsonInterval(double share, double count) {
  if (!(count > 0)) return {0, 1};
  const double n = count;
  const double p = std::clamp(share, 0.0, 1.0);
  const double z2 = kNormalQuantile * kNormalQuantile;
  const double center = (p + z2 / (2 * n)) / (1 + z2 / n);
  const double half =
      kNormalQuantile / (1 + z2 / n) * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
  return {std::clamp(center - half, 0.0, 1.0), std::clamp(center + half, 0.0, 1.0)};
}

Interval ShareInterval(const ClusterSums& sums) {
  if (sums.x == 0) return {0, 1};
  const double share = std::min(1.0, static_cast<double>(sums.y) / static_cast<double>(sums.x));
  Interval interval = WilsonInterval(share, EffectiveSamples(sums));
  const double half = sums.clusters < 2 ? 0 : ClusterHalfWidth(sums);
  interval.low = std::clamp(share - half, 0.0, interval.low);
  interval.high = std::clamp(share + half, interval.high, 1.0);
  return interval;
}

}  // namespace perfd
