#include "agent/shadow/rank/shadow_charges.h"

#include <algorithm>
#include <utility>

#include "core/base/clock.h"

namespace perfd::agent {
namespace {

// What a counter of the region has gained since it was charged last.
uint64_t NewlyCounted(uint64_t count, uint64_t& charged) {
  return count < charged ? 0 : count - std::exchange(charged, count);
}

}  // namespace

void ChargeStops(const std::vector<int64_t>& stops_ns, InjectionCost* cost) {
  for (int64_t ns : stops_ns) {
    ++cost->stops;
    cost->stop_ns += ns;
    cost->longest_stop_ns = std::max(cost->longest_stop_ns, ns);
  }
}

std::vector<uint64_t> NewEntries(const std::vector<ThreadRecord>& before,
                                 const std::vector<ThreadRecord>& after, uint32_t site) {
  std::vector<uint64_t> counts;
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    const uint64_t earlier = before[i].tid == after[i].tid ? before[i].entries[site] : 0;
    if (after[i].tid != 0 && after[i].entries[site] > earlier)
      counts.push_back(after[i].entries[site] - earlier);
  }
  return counts;
}

uint64_t MostEntries(const std::vector<uint64_t>& new_entries) {
  return new_entries.empty() ? 0 : *std::max_element(new_entries.begin(), new_entries.end());
}

void ChargeSite(const Site& now, const ShadowPlan& plan, PatchSite* site, InjectionCost* cost) {
  const uint64_t most_cpu_us = plan.team * (plan.shadow_ns + kNsPerSecond) / 1000;
  const uint64_t cpu_us = NewlyCounted(now.shadow_cpu_us, site->charged_cpu_us);
  cost->shadow_cpu_ns += 1000 * static_cast<int64_t>(std::min(cpu_us, most_cpu_us));
  const uint64_t timeouts = NewlyCounted(now.timeouts, site->charged_timeouts);
  cost->pass_through_ns +=
      static_cast<int64_t>(std::min<uint64_t>(timeouts, 1000) * plan.gather_ns);
}

}  // namespace perfd::agent
