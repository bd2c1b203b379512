// core/analysis/budget_governor.h - the sampling frequency that keeps a profile within its budget.
//
// Shape    NextFrequency(span) -> frequency for the next span, with the reason. The caller measures.
// Units    Hz as double; ns of CPU time; ratios of wall time. Stops and pauses of ranks are no part of it: a lower
//          frequency would not spare them, and core/analysis/injection_budget.h keeps them within the budget.
// Model    what interrupts one thread of a rank is waited for by the others (barriers): the costs of a rank's threads add up
//          to wall time, those of ranks side by side do not; of the agent's time counts what
//          ranks lost to it (agent/pipeline/cost/agent_share.h). Pessimistic on purpose.
// Threads  thread-safe (pure).
// Source   design P4. Decrease fast, recover slowly: after the AIMD rule of Chiu and Jain (Computer
//          Networks 17, 1989), with a recovery of 10 % per span. 80 %: room for one span's surprise. Switches:
//          docs/benchmarks/constants.md#kfarfactor.
#ifndef CORE_ANALYSIS_BUDGET_GOVERNOR_H_
#define CORE_ANALYSIS_BUDGET_GOVERNOR_H_

#include <cstdint>
#include <string>

namespace perfd {

inline constexpr double kGovernorFloorHz = 1;
inline constexpr double kGovernorAlarmRatio = 0.8;     // of the budget: above it, slow down
inline constexpr double kGovernorCalmRatio = 0.5;      // of the budget: below it, recover
inline constexpr double kGovernorStrongestCut = 0.25;  // one step never goes below this factor
inline constexpr double kGovernorWeakestCut = 0.9;
inline constexpr double kGovernorRecovery = 1.1;

// What was seen since the last decision.
struct GovernorSpan {
  int64_t wall_ns = 0;
  int ranks = 1;                  // that live
  uint64_t job_cpu_ns = 0;        // CPU time of the ranks
  uint64_t samples = 0;           // taken by the kernel, kept or not
  double sample_cost_ns = 0;      // calibrated cost of one sample
  uint64_t switches = 0;          // times a thread of the ranks was put on a CPU
  double switch_cost_ns = 0;      // what one costs more while its thread's event is on
  double on_share = 1;            // of the time events are on
  uint64_t lost_to_agent_ns = 0;  // of the ranks' time, to what the frequency steers of the agent
  double budget_ratio = 0;        // allowed cost / wall time
  double current_hz = 0;          // in force in this span
  double requested_hz = 0;        // asked for by the user
};

struct GovernorDecision {
  double frequency_hz = 0;  // kGovernorFloorHz..requested; never above requested
  double cost_ratio = 0;    // of this span; 0 when the job used no CPU time
  bool lowered = false;
  std::string reason;  // one sentence for people; empty when nothing changed
};

GovernorDecision NextFrequency(const GovernorSpan& span);

// Of the samples and switches of such a span, over all threads.
double KernelSamplingNs(const GovernorSpan& span);

}  // namespace perfd

#endif  // CORE_ANALYSIS_BUDGET_GOVERNOR_H_
