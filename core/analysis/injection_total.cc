#include "core/analysis/injection_total.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/analysis/job_pauses.h"

namespace perfd {
namespace {

template <typename Int>
void Raise(Int& sum, Int by) {
  const Int most = static_cast<Int>(kMostCost);
  sum = by >= most - std::min(sum, most) ? most : sum + by;
}

}  // namespace

void PauseSet::AddOverflow(int64_t ns) {
  Raise(overflow_ns_, ns);
}

void PauseSet::Add(int64_t begin_ns, int64_t end_ns) {
  if (begin_ns >= end_ns) return;
  // The first span that does not end before the new one begins.
  const auto first =
      std::lower_bound(spans_.begin(), spans_.end(), begin_ns,
                       [](const PauseSpan& span, int64_t begin) { return span.end_ns < begin; });
  auto last = first;
  PauseSpan joined{begin_ns, end_ns};
  for (; last != spans_.end() && last->begin_ns <= end_ns; ++last) {
    joined.begin_ns = std::min(joined.begin_ns, last->begin_ns);
    joined.end_ns = std::max(joined.end_ns, last->end_ns);
  }
  if (first != last) {
    *first = joined;
    spans_.erase(first + 1, last);
  } else if (spans_.size() < kMaxSpans) {
    spans_.insert(first, joined);
  } else {
    AddOverflow(end_ns - begin_ns);
  }
}

void PauseSet::Merge(const PauseSet& other) {
  for (const PauseSpan& span : other.spans_) Add(span.begin_ns, span.end_ns);
  AddOverflow(other.overflow_ns_);
}

int64_t PauseSet::TotalNs() const {
  int64_t total = overflow_ns_;
  for (const PauseSpan& span : spans_) total += span.end_ns - span.begin_ns;
  return total;
}

void AddCost(const InjectionCost& cost, InjectionCost& sum) {
  Raise(sum.stops, cost.stops);
  Raise(sum.stop_ns, cost.stop_ns);
  sum.longest_stop_ns = std::max(sum.longest_stop_ns, cost.longest_stop_ns);
  Raise(sum.shadows, cost.shadows);
  Raise(sum.failed_arms, cost.failed_arms);
  Raise(sum.pause_ns, cost.pause_ns);
  sum.longest_pause_ns = std::max(sum.longest_pause_ns, cost.longest_pause_ns);
  Raise(sum.later_fault_ns, cost.later_fault_ns);
  Raise(sum.pass_through_ns, cost.pass_through_ns);
  Raise(sum.recoveries, cost.recoveries);
  Raise(sum.recovery_ns, cost.recovery_ns);
  Raise(sum.shadow_cpu_ns, cost.shadow_cpu_ns);
}

InjectionTotal TotalInjection(std::span<const LoopMeasurement* const> loops,
                              const JobPauses& pauses, int64_t audited_ns, int64_t elapsed_ns) {
  InjectionTotal total;
  std::map<std::pair<std::string, int32_t>, int64_t> spread_out;  // by node, pid
  for (const LoopMeasurement* loop : loops) {
    AddCost(loop->cost, total.sum);
    int64_t& of_rank = spread_out[{loop->node, loop->pid}];
    Raise(of_rank, loop->cost.later_fault_ns);
    Raise(of_rank, loop->cost.pass_through_ns);
    Raise(of_rank, loop->cost.recovery_ns);
  }
  int64_t worst = 0;
  for (const auto& [rank, ns] : spread_out) worst = std::max(worst, ns);
  const int64_t not_on_record =
      std::max<int64_t>(0, total.sum.stop_ns + total.sum.pause_ns - audited_ns);
  total.added_wall_ns = std::min(kMostCost, pauses.TotalNs());
  total.shared_ns = std::min(kMostCost, pauses.SharedNs());
  total.pauses_lost = pauses.lost();
  Raise(total.added_wall_ns, not_on_record);
  Raise(total.added_wall_ns, worst);
  if (elapsed_ns > 0)
    total.added_ratio = static_cast<double>(total.added_wall_ns) / static_cast<double>(elapsed_ns);
  return total;
}

}  // namespace perfd
