// daemon/report/hot_loops.h - the loops of a job that are worth measuring by variants.
//
// Shape    HotLoops: the hot set of the report (core/analysis/hot/hot_set.h), heaviest first, by what an agent needs to find them.
//          HeatOfLoops: every compute loop with its heat and what is known of it, for choosing again (core/analysis/hot/hot_phases.h).
//          SharesOfHot: what samples alone tell of the hot set (core/analysis/hot/until_known.h).
// Threads  thread-safe (pure).
#ifndef DAEMON_REPORT_HOT_LOOPS_H_
#define DAEMON_REPORT_HOT_LOOPS_H_

#include <vector>

#include "core/analysis/hot/hot_phases.h"
#include "core/model/measure_order.h"
#include "core/model/profile_spec.h"
#include "daemon/aggregate/profile_aggregate.h"
#include "daemon/aggregate/recent_heat.h"

namespace perfd::daemon {

std::vector<MeasureLoop> HotLoops(const ProfileAggregate& aggregate, const HotspotSpec& spec);

// By key: the same order for equal aggregates. `recent`: of the last kRecentNs, by LocationId.
std::vector<HeatedLoop> HeatOfLoops(const ProfileAggregate& aggregate,
                                    const RecentHeat::ById& recent);

ShareKnowledge SharesOfHot(const ProfileAggregate& aggregate, const HotspotSpec& spec);

}  // namespace perfd::daemon

#endif  // DAEMON_REPORT_HOT_LOOPS_H_
