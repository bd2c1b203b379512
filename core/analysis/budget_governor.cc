#include "core/analysis/budget_governor.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace perfd {
namespace {

double Sane(double value) {
  return std::isfinite(value) && value > 0 ? value : 0;
}

// The floor gives way to a request below it.
double Clamp(double frequency_hz, double requested_hz) {
  return std::min(std::max(frequency_hz, kGovernorFloorHz), requested_hz);
}

double AddedWallNs(const GovernorSpan& span) {
  return KernelSamplingNs(span) / std::max(1, span.ranks) +
         static_cast<double>(span.lost_to_agent_ns);
}

GovernorDecision Lower(const GovernorSpan& span, GovernorDecision decision, double alarm) {
  const double factor =
      std::clamp(alarm / decision.cost_ratio, kGovernorStrongestCut, kGovernorWeakestCut);
  const double next = Clamp(decision.frequency_hz * factor, Sane(span.requested_hz));
  decision.lowered = next < decision.frequency_hz;
  decision.frequency_hz = next;
  const std::string cost =
      absl::StrFormat("sampling cost up to %.2f %% of the job's time, its budget is %.2f %%: ",
                      100 * decision.cost_ratio, 100 * Sane(span.budget_ratio));
  decision.reason = decision.lowered
                        ? absl::StrFormat("%slowered to %.1f Hz", cost, next)
                        : absl::StrFormat("%s%.1f Hz is the lowest frequency", cost, next);
  return decision;
}

GovernorDecision Raise(const GovernorSpan& span, GovernorDecision decision) {
  const double next = Clamp(decision.frequency_hz * kGovernorRecovery, Sane(span.requested_hz));
  if (next <= decision.frequency_hz) return decision;
  decision.frequency_hz = next;
  decision.reason =
      absl::StrFormat("sampling cost up to %.2f %% of the job's time: raised to %.1f Hz",
                      100 * decision.cost_ratio, next);
  return decision;
}

}  // namespace

double KernelSamplingNs(const GovernorSpan& span) {
  return static_cast<double>(span.samples) * Sane(span.sample_cost_ns) +
         std::min(1.0, Sane(span.on_share)) * static_cast<double>(span.switches) *
             Sane(span.switch_cost_ns);
}

GovernorDecision NextFrequency(const GovernorSpan& span) {
  GovernorDecision decision;
  decision.frequency_hz = Clamp(Sane(span.current_hz), Sane(span.requested_hz));
  // Without job CPU time there is nothing to compare with, and nothing is sampled either.
  if (span.job_cpu_ns == 0 || span.wall_ns <= 0) return decision;
  decision.cost_ratio = AddedWallNs(span) / static_cast<double>(span.wall_ns);
  const double budget = Sane(span.budget_ratio);
  if (decision.cost_ratio > kGovernorAlarmRatio * budget)
    return Lower(span, std::move(decision), kGovernorAlarmRatio * budget);
  if (decision.cost_ratio < kGovernorCalmRatio * budget) return Raise(span, std::move(decision));
  return decision;
}

}  // namespace perfd
