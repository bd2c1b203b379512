// daemon/metrics/exposition.h - figures of the daemon as metric families.
//
// Shape    names and units follow the Prometheus rules; no pid, rank or address is ever a label, and profiles,
//          loops and nodes are bounded by who made the figures.
// Units    seconds, bytes, ratios 0..1.
// Threads  thread-safe (pure).
// Source   prometheus.io/docs/practices/naming.
#ifndef DAEMON_METRICS_EXPOSITION_H_
#define DAEMON_METRICS_EXPOSITION_H_

#include <prometheus/metric_family.h>

#include <vector>

#include "daemon/metrics/figures.h"
#include "daemon/metrics/process_figures.h"

namespace perfd::daemon {

std::vector<prometheus::MetricFamily> Expose(const DaemonFigures& figures,
                                             const ProcessFigures& process);

}  // namespace perfd::daemon

#endif  // DAEMON_METRICS_EXPOSITION_H_
