#include "daemon/report/called_times.h"

#include <algorithm>
#include <cmath>

#include "core/analysis/share_interval.h"
#include "daemon/aggregate/paths/called_parts.h"
#include "daemon/report/share_of.h"

namespace perfd::daemon {
namespace {

// Sums of bounds as multiples of 2^-48: the same in any order of the places.
constexpr double kOne = 281474976710656;

struct Bounds {
  uint64_t low = 0;
  uint64_t high = 0;

  void Add(const Interval& place, const Interval& part) {
    low += static_cast<uint64_t>(std::round(place.low * part.low * kOne));
    high += static_cast<uint64_t>(std::round(place.high * part.high * kOne));
  }
  CalledShare Around(uint64_t time, uint64_t whole) const {
    const double share = ShareOf(time, whole);
    return {share,
            {std::min(share, static_cast<double>(low) / kOne),
             std::clamp(static_cast<double>(high) / kOne, share, 1.0)}};
  }
};

}  // namespace

std::vector<CalledTime> CalledTimes(const ProfileAggregate& aggregate) {
  std::vector<CalledTime> called(aggregate.locations().size());
  std::vector<Bounds> cpu(called.size()), wall(called.size());
  const JobTotals& totals = aggregate.totals();
  for (const CalledPart& part : CalledParts(aggregate.paths().calls())) {
    const LocationTotals& place = aggregate.locations()[part.location];
    const auto all = static_cast<double>(part.all);
    const Interval of_paths = WilsonInterval(static_cast<double>(part.paths) / all, all);
    called[part.loop].time.cpu_ns += part.Of(place.counts.cpu_ns);
    called[part.loop].time.wall_ns += part.Of(place.counts.wall_ns);
    cpu[part.loop].Add(ShareInterval(aggregate.SumsOf(place)), of_paths);
    wall[part.loop].Add(ShareInterval(aggregate.SumsOf(place, ShareBasis::kWall)), of_paths);
  }
  for (size_t i = 0; i < called.size(); ++i) {
    const InclusiveTime& time = called[i].time;
    if (time == InclusiveTime{}) continue;
    called[i].cpu = cpu[i].Around(time.cpu_ns, totals.cpu_ns);
    called[i].wall = wall[i].Around(time.wall_ns, totals.wall.elapsed_ns);
  }
  return called;
}

absl::flat_hash_map<std::string, InclusiveTime> CalledTimesOf(const ProfileAggregate& aggregate,
                                                              const RankInfo& rank) {
  const std::vector<CalledPart> parts = CalledParts(aggregate.paths().calls());
  if (parts.empty()) return {};
  std::vector<Counts> own(aggregate.locations().size());
  std::vector<bool> is_rank(aggregate.thread_count());
  for (size_t i = 0; i < is_rank.size(); ++i) {
    const ThreadKey key = aggregate.thread(i).key;
    is_rank[i] = key.node == rank.node && key.rank == rank.rank && key.pid == rank.pid;
  }
  aggregate.ForEachCell([&](uint32_t thread, uint32_t location, const Counts& counts) {
    if (is_rank[thread]) own[location] += counts;
  });
  absl::flat_hash_map<std::string, InclusiveTime> called;
  for (const CalledPart& part : parts) {
    InclusiveTime& sum = called[LocationId(aggregate.locations()[part.loop].location)];
    sum.cpu_ns += part.Of(own[part.location].cpu_ns);
    sum.wall_ns += part.Of(own[part.location].wall_ns);
  }
  return called;
}

}  // namespace perfd::daemon
