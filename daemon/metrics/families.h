// daemon/metrics/families.h - short ways to write metric families.
//
// Threads  thread-safe (pure).
#ifndef DAEMON_METRICS_FAMILIES_H_
#define DAEMON_METRICS_FAMILIES_H_

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "daemon/metrics/figures.h"

namespace perfd::daemon {

using MetricLabels = std::vector<prometheus::ClientMetric::Label>;

prometheus::MetricFamily NewFamily(const char* name, const char* help, prometheus::MetricType type);

// One more series of the family.
void AddSeries(prometheus::MetricFamily& family, double value, MetricLabels labels);

// A family of one series without labels.
prometheus::MetricFamily OneSeries(const char* name, const char* help, prometheus::MetricType type,
                                   double value);

// A series of each count; its name is the value of `label`.
prometheus::MetricFamily LabelledSeries(const char* name, const char* help,
                                        prometheus::MetricType type, const char* label,
                                        const std::vector<LabelledCount>& counts);

}  // namespace perfd::daemon

#endif  // DAEMON_METRICS_FAMILIES_H_
