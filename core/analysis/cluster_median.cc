#include "core/analysis/cluster_median.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "core/analysis/share_interval.h"

namespace perfd {
namespace {

constexpr double kNormalQuantile = 1.959963984540054;  // 97.5 % of the standard normal

// Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014, figure 17.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  // Below `bound`; the bias of the modulus is under bound / 2^64.
  size_t Below(size_t bound) {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<size_t>((z ^ (z >> 31)) % bound);
  }

 private:
  uint64_t state_;
};

// Values in order, each with the index of its cluster: a draw is a number of copies per cluster.
struct Clusters {
  std::vector<double> values;
  std::vector<uint32_t> cluster;
  std::vector<size_t> sizes;

  explicit Clusters(std::span<const ClusterValue> from) {
    std::vector<ClusterValue> kept(
        from.begin(),
        from.begin() + static_cast<std::ptrdiff_t>(std::min(from.size(), kMaxValues)));
    std::sort(kept.begin(), kept.end(),
              [](const auto& a, const auto& b) { return a.value < b.value; });
    std::map<uint32_t, uint32_t> index;
    for (const ClusterValue& v : kept) index.emplace(v.cluster, 0);
    uint32_t next = 0;
    for (auto& [cluster_id, number] : index) number = next++;
    sizes.resize(index.size());
    for (const ClusterValue& v : kept) {
      values.push_back(v.value);
      cluster.push_back(index[v.cluster]);
      ++sizes[cluster.back()];
    }
  }

  // The median when cluster c is there copies[c] times.
  double MedianOf(const std::vector<size_t>& copies) const {
    size_t total = 0;
    for (size_t c = 0; c < sizes.size(); ++c) total += sizes[c] * copies[c];
    const size_t lower = (total - 1) / 2;  // index of the lower middle
    const size_t upper = total / 2;
    size_t seen = 0;
    double low = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t before = seen;
      seen += copies[cluster[i]];
      if (before <= lower && lower < seen) low = values[i];
      if (before <= upper && upper < seen) return low + (values[i] - low) / 2;
    }
    return low;
  }

  double MedianOfAll() const { return MedianOf(std::vector<size_t>(sizes.size(), 1)); }

  double Draw(Random& random) const {
    std::vector<size_t> copies(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) ++copies[random.Below(sizes.size())];
    return MedianOf(copies);
  }
};

// The draws' 95 % range around `value`, widened as for the mean of `clusters` values.
Ratio Widened(double value, std::vector<double> draws, size_t clusters) {
  std::sort(draws.begin(), draws.end());
  const double n = static_cast<double>(clusters);
  const double widen = StudentQuantile(clusters - 1) / kNormalQuantile * std::sqrt(n / (n - 1));
  const double low = value - widen * (value - SortedQuantile(draws, 0.025));
  const double high = value + widen * (SortedQuantile(draws, 0.975) - value);
  return {value, std::max(0.0, std::min(low, value)), std::max(high, value)};
}

Ratio OfOneCluster(double value, double lowest, double highest) {
  const double width = kSingleClusterWidth * std::abs(value);
  return {value, std::max(0.0, std::min(lowest, value - width)), std::max(highest, value + width)};
}

struct Squares {
  double mean = 0;
  double sum = 0;        // of squared differences from the mean
  uint64_t degrees = 0;  // of freedom
};

Squares SquaresOf(std::span<const double> values) {
  Squares squares;
  if (values.empty()) return squares;
  for (const double value : values) squares.mean += value / static_cast<double>(values.size());
  for (const double value : values) squares.sum += (value - squares.mean) * (value - squares.mean);
  squares.degrees = values.size() - 1;
  return squares;
}

}  // namespace

Ratio ClusterMedian(std::span<const ClusterValue> values, uint64_t seed) {
  if (values.empty()) return {};
  const Clusters clusters(values);
  const double median = clusters.MedianOfAll();
  if (clusters.sizes.size() < 2)
    return OfOneCluster(median, clusters.values.front(), clusters.values.back());
  Random random(seed);
  std::vector<double> draws;
  for (int i = 0; i < kResamples; ++i) draws.push_back(clusters.Draw(random));
  return Widened(median, std::move(draws), clusters.sizes.size());
}

Ratio MedianQuotient(std::span<const ClusterValue> a, std::span<const ClusterValue> b,
                     uint64_t seed) {
  if (a.empty() || b.empty()) return {};
  const Clusters over(a);
  const Clusters under(b);
  if (!(under.values.front() > 0)) return {};
  const double value = over.MedianOfAll() / under.MedianOfAll();
  const size_t fewest = std::min(over.sizes.size(), under.sizes.size());
  if (fewest < 2) {
    return OfOneCluster(value, over.values.front() / under.values.back(),
                        over.values.back() / under.values.front());
  }
  Random random(seed);
  std::vector<double> draws;
  for (int i = 0; i < kResamples; ++i) {
    const double drawn = over.Draw(random);
    draws.push_back(drawn / under.Draw(random));
  }
  return Widened(value, std::move(draws), fewest);
}

Ratio OfAnotherRank(const Ratio& own, std::span<const double> measured,
                    std::span<const double> seconds) {
  const Squares between = SquaresOf(measured), times = SquaresOf(seconds);
  const bool timed = times.mean > 0;
  const uint64_t degrees = between.degrees + (timed ? times.degrees : 0);
  if (degrees == 0) return {own.value, 0, std::max(1.0, own.high)};
  const double scale = timed ? own.value / times.mean : 0;
  const double pooled = (between.sum + scale * scale * times.sum) / static_cast<double>(degrees);
  const double own_variance =
      between.degrees > 0 ? between.sum / static_cast<double>(between.degrees) : 0;
  const double ranks = static_cast<double>(measured.size());
  const double away =
      StudentQuantile(degrees) * std::sqrt(std::max(pooled, own_variance) * (1 + 1 / ranks));
  return {own.value, std::max(0.0, own.value - std::hypot(own.value - own.low, away)),
          own.value + std::hypot(own.high - own.value, away)};
}

double Median(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return SortedQuantile(sorted, 0.5);
}

uint64_t Median(std::vector<uint64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double SortedQuantile(std::span<const double> sorted, double at) {
  if (sorted.empty()) return 0;
  const double position = at * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  if (below + 1 >= sorted.size()) return sorted.back();
  return sorted[below] +
         (position - static_cast<double>(below)) * (sorted[below + 1] - sorted[below]);
}

}  // namespace perfd
