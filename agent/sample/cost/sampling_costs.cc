#include "agent/sample/cost/sampling_costs.h"

#include "agent/sample/cost/sample_cost.h"
#include "agent/sample/cost/start_cost.h"
#include "agent/sample/cost/switch_cost.h"
#include "core/base/log.h"
#include "core/base/mutex.h"

namespace perfd::agent {
namespace {

// The rate is among them: what a switch costs depends on it.
std::string KeyOf(const ChosenEvent& event) {
  return {reinterpret_cast<const char*>(&event.attr), sizeof(event.attr)};
}

}  // namespace

SamplingCosts::SamplingCosts()
    : measure_([](const ChosenEvent& event) {
        return SamplingCost{MeasureSampleCost(event), MeasureSwitchCost(event),
                            MeasureStartCost(event)};
      }) {}

SamplingCost SamplingCosts::Of(const ChosenEvent& event) {
  MutexLock lock(&mutex_);
  const std::string key = KeyOf(event);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  SamplingCost cost = measure_(event);
  if (!cost.sample_ns.ok() || !cost.switch_ns.ok() || !cost.start_ns.ok()) return cost;
  LogInfo(
      "sampling by {} costs {:.1f} us a sample, {:.1f} us a switch, {:.1f} us a start of a thread",
      event.name, static_cast<double>(*cost.sample_ns) / 1e3, *cost.switch_ns / 1e3,
      *cost.start_ns / 1e3);
  known_.emplace(key, cost);
  return cost;
}

}  // namespace perfd::agent
