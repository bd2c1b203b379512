// daemon/metrics/profile_families.h - what /metrics shows of single profiles and their loops.
//
// Shape    series are bounded by who made the figures; names of people and places are only on the *_info families, to be
//          joined by (profile, loop), and only where the site shows them.
// Units    seconds, ratios.
// Threads  thread-safe (pure).
#ifndef DAEMON_METRICS_PROFILE_FAMILIES_H_
#define DAEMON_METRICS_PROFILE_FAMILIES_H_

#include <prometheus/metric_family.h>

#include <vector>

#include "daemon/metrics/figures.h"

namespace perfd::daemon {

void ExposeProfiles(const std::vector<ProfileFigure>& profiles, MetricNames names,
                    std::vector<prometheus::MetricFamily>& out);
void ExposeLoops(const std::vector<ProfileFigure>& profiles, MetricNames names,
                 std::vector<prometheus::MetricFamily>& out);
void ExposeMeasured(const std::vector<ProfileFigure>& profiles,
                    std::vector<prometheus::MetricFamily>& out);

}  // namespace perfd::daemon

#endif  // DAEMON_METRICS_PROFILE_FAMILIES_H_
