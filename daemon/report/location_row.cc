#include "daemon/report/location_row.h"

#include <algorithm>
#include <utility>

#include "daemon/report/share_of.h"

namespace perfd::daemon {

bool IsWaitingLoop(const CodeLocation& location) {
  return location.loop.has_value() && location.loop_kind == LoopKind::kWaiting;
}

bool IsComputeLoop(const CodeLocation& location) {
  return location.category == Category::kLoop && !IsWaitingLoop(location);
}

ShareBasis BasisOf(const ProfileAggregate& aggregate) {
  return aggregate.totals().wall.Known() ? ShareBasis::kWall : ShareBasis::kCpu;
}

uint64_t TimeOf(const Counts& counts, ShareBasis basis) {
  return basis == ShareBasis::kWall ? counts.wall_ns : counts.cpu_ns;
}

// Of the job's CPU time, where threads ended before they could be sampled; else 0: the two accounts differ a little for other reasons.
double UnsampledPart(const JobTotals& totals) {
  constexpr double kWorthTelling = 0.05;
  if (totals.accounting.late_threads == 0 || totals.overhead.job_cpu_ns == 0) return 0;
  const double part =
      1 - static_cast<double>(totals.cpu_ns) / static_cast<double>(totals.overhead.job_cpu_ns);
  return part < kWorthTelling ? 0 : part;
}

PlaceTimes::PlaceTimes(const ProfileAggregate& aggregate)
    : aggregate_(aggregate),
      unsampled_(UnsampledPart(aggregate.totals())),
      called_(CalledTimes(aggregate)) {
  std::vector<InclusiveTime> called;
  called.reserve(called_.size());
  for (const CalledTime& of_place : called_) called.push_back(of_place.time);
  inclusive_ = InclusiveTimes(aggregate.locations(), called);
}

// What was not sampled may have been all in the place, or all elsewhere.
Interval PlaceTimes::Widened(const Interval& sampled) const {
  return {sampled.low * (1 - unsampled_), sampled.high * (1 - unsampled_) + unsampled_};
}

uint64_t PlaceTimes::OwnAndCalled(size_t place, ShareBasis basis) const {
  const InclusiveTime& called = called_[place].time;
  return TimeOf(aggregate_.locations()[place].counts, basis) +
         (basis == ShareBasis::kWall ? called.wall_ns : called.cpu_ns);
}

ReportRow PlaceTimes::Row(size_t place) const {
  const LocationTotals& location = aggregate_.locations()[place];
  const InclusiveTime& inclusive = inclusive_[place];
  const JobTotals& totals = aggregate_.totals();
  ReportRow row;
  row.id = LocationId(location.location);
  row.location = location.location;
  row.samples = location.counts.samples;
  row.share = ShareOf(location.counts.cpu_ns, totals.cpu_ns);
  row.share_interval = Widened(ShareInterval(aggregate_.SumsOf(location)));
  row.inclusive_share = ShareOf(inclusive.cpu_ns, totals.cpu_ns);
  row.called = called_[place].cpu;
  if (BasisOf(aggregate_) == ShareBasis::kWall) {
    row.wall = {ShareOf(location.counts.wall_ns, totals.wall.elapsed_ns),
                Widened(ShareInterval(aggregate_.SumsOf(location, ShareBasis::kWall))),
                ShareOf(inclusive.wall_ns, totals.wall.elapsed_ns), called_[place].wall};
  }
  return row;
}

std::vector<uint32_t> HeaviestFirst(const ProfileAggregate& aggregate, const PlaceTimes& times) {
  const std::vector<LocationTotals>& locations = aggregate.locations();
  const ShareBasis basis = BasisOf(aggregate);
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < locations.size(); ++i) {
    if (locations[i].counts.samples > 0 || times.OwnAndCalled(i, ShareBasis::kCpu) > 0)
      order.push_back(i);
  }
  const auto time = [&](uint32_t i) {
    return std::pair(times.OwnAndCalled(i, basis), times.OwnAndCalled(i, ShareBasis::kCpu));
  };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (time(a) != time(b)) return time(a) > time(b);
    return LocationKey(locations[a].location) < LocationKey(locations[b].location);
  });
  return order;
}

}  // namespace perfd::daemon
