// core/analysis/injection_budget.h - how long a rank may still be held up by its measurement.
//
// Shape    Spend what a step cost; ask before the next one with its predicted cost. Predictions are corrected by the ratio
//          of what earlier steps of the same kind really cost.
// Units    ns of wall time added to the job.
// Threads  thread-compatible.
// Source   design P4: added wall time <= ratio x elapsed time. A little may be spent ahead of time, so that a profile does
//          not begin with waiting: never more than is earned in kAheadNs, nor more than the profile earns until its end.
#ifndef CORE_ANALYSIS_INJECTION_BUDGET_H_
#define CORE_ANALYSIS_INJECTION_BUDGET_H_

#include <cstdint>

namespace perfd {

class InjectionBudget {
 public:
  static constexpr int64_t kAheadNs = 10'000'000'000;

  // The profile lasts from `begin_ns` to `end_ns` (monotonic); ratio 0..0.5.
  InjectionBudget(double ratio, int64_t begin_ns, int64_t end_ns);

  void Spend(int64_t ns) { spent_ns_ += ns; }
  // Spends what goes on all the time, as sampling does, until `now_ns`: what it will take of the time to come is not given away.
  void Charge(int64_t ns, int64_t now_ns);
  int64_t spent_ns() const { return spent_ns_; }

  // What may be spent at `now_ns`; negative: overspent.
  int64_t CreditNs(int64_t now_ns) const;
  bool Allows(int64_t cost_ns, int64_t now_ns) const { return cost_ns <= CreditNs(now_ns); }
  // When to ask again about `cost_ns`; 0: it is allowed. -1: not within this profile, even if nothing were charged any more:
  // what is only expected to be charged puts a step off, but rules none out.
  int64_t WaitNs(int64_t cost_ns, int64_t now_ns) const;
  // The same, if what is charged goes on as it did.
  int64_t LikelyWaitNs(int64_t cost_ns, int64_t now_ns) const;
  // The whole of what this profile may spend.
  int64_t TotalNs() const;

 private:
  int64_t AheadNs(int64_t now_ns) const;
  int64_t EarnedNs(int64_t now_ns) const;  // and what may be spent ahead
  // What will be charged within so long, at the rate of the last seconds.
  int64_t ComingNs(int64_t ns) const;

  double ratio_;
  int64_t begin_ns_;
  int64_t end_ns_;
  int64_t spent_ns_ = 0;
  double charged_rate_ = 0;  // ns of it charged per ns
  int64_t charged_until_ns_;
};

// Predicted against measured cost of one kind of step.
class CostCorrection {
 public:
  // What to expect of a step whose model says `predicted_ns`. What was learnt from small steps is not stretched to far larger ones.
  int64_t Corrected(int64_t predicted_ns) const;
  void Learn(int64_t predicted_ns, int64_t measured_ns);
  double factor() const { return factor_; }

 private:
  double factor_ = 1;    // 0.1 .. 10
  double usual_ns_ = 0;  // predictions so far, the last ones most
};

}  // namespace perfd

#endif  // CORE_ANALYSIS_INJECTION_BUDGET_H_
