#include "core/analysis/memory/beyond_share.h"

#include "core/analysis/share_interval.h"
#include "core/model/memory/sum.h"

namespace perfd {
namespace {

// Of the loads that say where they were found: so many may lack a latency.
constexpr uint64_t kFewWithout = 100;

}  // namespace

NoShare WhyNoShare(const BorderTime& sums, uint64_t without_latency) {
  if (without_latency > Sum(sums.told, sums.untold) / kFewWithout) return NoShare::kNoLatency;
  const bool most_tell = sums.untold_cycles < sums.told_cycles;
  if (!most_tell && sums.untold >= kFewestSamples) return NoShare::kNotTold;
  if (sums.told < kFewestSamples || sums.told_cycles == 0) return NoShare::kTooFew;
  return most_tell ? NoShare::kNone : NoShare::kNotTold;
}

NoShare WhyNoShare(const RankMemory& rank) {
  BorderTime sums;
  sums.told = rank.told;
  sums.untold = rank.untold;
  sums.told_cycles = rank.told_cycles;
  sums.untold_cycles = rank.untold_cycles;
  return WhyNoShare(sums, rank.without_latency);
}

double ShareOf(const RankMemory& rank) {
  return rank.told_cycles == 0 ? 0
                               : static_cast<double>(rank.beyond_cycles) /
                                     static_cast<double>(rank.told_cycles);
}

void BorderSquares::Add(const BorderTime& cluster) {
  if (cluster.told_cycles == 0) return;
  const absl::uint128 x = cluster.told_cycles;
  const absl::uint128 y = cluster.beyond_cycles;
  clusters = Sum<uint64_t>(clusters, 1);
  xx = Sum(xx, x * x);
  xy = Sum(xy, x * y);
  yy = Sum(yy, y * y);
}

void BorderSquares::Merge(const BorderSquares& other) {
  clusters = Sum(clusters, other.clusters);
  xx = Sum(xx, other.xx);
  xy = Sum(xy, other.xy);
  yy = Sum(yy, other.yy);
}

BeyondShare ShareBeyond(const BorderTime& sums, const BorderSquares& squares,
                        uint64_t without_latency) {
  BeyondShare out;
  out.samples = sums.told;
  out.untold = sums.untold;
  out.without_latency = without_latency;
  out.why_not = WhyNoShare(sums, without_latency);
  if (out.why_not != NoShare::kNone) return out;
  const ClusterSums clusters{.clusters = squares.clusters,
                             .x = sums.told_cycles,
                             .y = sums.beyond_cycles,
                             .xx = squares.xx,
                             .xy = squares.xy,
                             .yy = squares.yy,
                             .ww = sums.told_squares,
                             .ww_y = sums.beyond_squares};
  out.share = static_cast<double>(clusters.y) / static_cast<double>(clusters.x);
  out.interval = ShareInterval(clusters);
  return out;
}

}  // namespace perfd
