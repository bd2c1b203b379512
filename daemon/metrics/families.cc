#include "daemon/metrics/families.h"

#include <utility>

#include "core/base/log.h"

namespace perfd::daemon {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily NewFamily(const char* name, const char* help, MetricType type) {
  return {.name = name, .help = help, .type = type, .metric = {}};
}

void AddSeries(MetricFamily& family, double value, MetricLabels labels) {
  // What a terminal would obey stands there as text.
  for (auto& label : labels) label.value = OneLine(label.value);
  ClientMetric metric;
  metric.label = std::move(labels);
  if (family.type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  family.metric.push_back(std::move(metric));
}

MetricFamily OneSeries(const char* name, const char* help, MetricType type, double value) {
  MetricFamily family = NewFamily(name, help, type);
  AddSeries(family, value, {});
  return family;
}

MetricFamily LabelledSeries(const char* name, const char* help, MetricType type, const char* label,
                            const std::vector<LabelledCount>& counts) {
  MetricFamily family = NewFamily(name, help, type);
  for (const auto& [value, count] : counts)
    AddSeries(family, static_cast<double>(count), {{label, value}});
  return family;
}

}  // namespace perfd::daemon
