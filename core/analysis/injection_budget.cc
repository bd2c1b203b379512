#include "core/analysis/injection_budget.h"

#include <algorithm>
#include <cmath>

namespace perfd {
namespace {

// Of the budget. The governor keeps sampling below a third of it; the agent's other threads and its helpers come on top. What is
// left lets a profile whose beginning was dear have its first shadow before its end.
constexpr double kMostComing = 0.75;
constexpr double kRateNs = 5e9;  // what was charged so long ago counts for a third in the rate
constexpr int64_t kRetryNs = 50'000'000;
constexpr double kLeastFactor = 0.1;
constexpr double kMostFactor = 10;
constexpr double kFarLarger = 4;  // than steps were so far

int64_t Earned(double ratio, int64_t ns) {
  return static_cast<int64_t>(ratio * static_cast<double>(ns));
}

}  // namespace

InjectionBudget::InjectionBudget(double ratio, int64_t begin_ns, int64_t end_ns)
    : ratio_(std::clamp(ratio, 0.0, 0.5)),
      begin_ns_(begin_ns),
      end_ns_(std::max(begin_ns, end_ns)),
      charged_until_ns_(begin_ns) {}

void InjectionBudget::Charge(int64_t ns, int64_t now_ns) {
  if (ns <= 0) return;
  spent_ns_ += ns;
  const int64_t over_ns = now_ns - charged_until_ns_;
  if (over_ns <= 0) return;
  const double rate = static_cast<double>(ns) / static_cast<double>(over_ns);
  // In the beginning the mean so far: a program that is read in the first moment is no rate.
  const double weight =
      std::max(static_cast<double>(over_ns) / static_cast<double>(now_ns - begin_ns_),
               -std::expm1(-static_cast<double>(over_ns) / kRateNs));
  charged_rate_ += weight * (rate - charged_rate_);
  charged_until_ns_ = now_ns;
}

int64_t InjectionBudget::ComingNs(int64_t ns) const {
  return Earned(std::min(charged_rate_, kMostComing * ratio_), ns);
}

int64_t InjectionBudget::TotalNs() const {
  return Earned(ratio_, end_ns_ - begin_ns_);
}

int64_t InjectionBudget::AheadNs(int64_t now_ns) const {
  return std::min(kAheadNs, end_ns_ - std::clamp(now_ns, begin_ns_, end_ns_));
}

int64_t InjectionBudget::EarnedNs(int64_t now_ns) const {
  return Earned(ratio_, std::clamp(now_ns, begin_ns_, end_ns_) - begin_ns_ + AheadNs(now_ns));
}

int64_t InjectionBudget::CreditNs(int64_t now_ns) const {
  return EarnedNs(now_ns) - spent_ns_ - ComingNs(AheadNs(now_ns));
}

int64_t InjectionBudget::WaitNs(int64_t cost_ns, int64_t now_ns) const {
  if (Allows(cost_ns, now_ns)) return 0;
  if (ratio_ <= 0 || spent_ns_ + cost_ns > TotalNs()) return -1;
  const int64_t missing = cost_ns + spent_ns_ - EarnedNs(now_ns);
  if (missing <= 0) return kRetryNs;
  return static_cast<int64_t>(std::ceil(static_cast<double>(missing) / ratio_));
}

int64_t InjectionBudget::LikelyWaitNs(int64_t cost_ns, int64_t now_ns) const {
  if (Allows(cost_ns, now_ns)) return 0;
  const double rate = ratio_ - std::min(charged_rate_, kMostComing * ratio_);
  const auto end_ns = static_cast<double>(end_ns_ - now_ns);
  // At the end nothing is to come any more.
  if (rate <= 0 || static_cast<double>(TotalNs() - spent_ns_ - cost_ns) < charged_rate_ * end_ns)
    return -1;
  const auto missing = static_cast<double>(cost_ns - CreditNs(now_ns));
  return std::max(kRetryNs, static_cast<int64_t>(std::ceil(missing / rate)));
}

int64_t CostCorrection::Corrected(int64_t predicted_ns) const {
  const auto predicted = static_cast<double>(predicted_ns);
  if (factor_ <= 1 || usual_ns_ <= 0) return static_cast<int64_t>(factor_ * predicted);
  return static_cast<int64_t>(predicted +
                              (factor_ - 1) * std::min(predicted, kFarLarger * usual_ns_));
}

// Up at once, down by half of the difference, for steps of the usual size: one that costs more than was said must not be
// repeated. Smaller ones tell less, larger ones more: a CPU that was away for some ms is many times what a small one costs.
void CostCorrection::Learn(int64_t predicted_ns, int64_t measured_ns) {
  if (predicted_ns <= 0 || measured_ns < 0) return;
  const double seen =
      std::clamp(static_cast<double>(measured_ns) / static_cast<double>(predicted_ns), kLeastFactor,
                 kMostFactor);
  const auto size = static_cast<double>(predicted_ns);
  const double weight = usual_ns_ > 0 ? size / usual_ns_ : 1;
  usual_ns_ = usual_ns_ > 0 ? 0.5 * (usual_ns_ + size) : size;
  factor_ += std::clamp(seen > factor_ ? weight : 0.5 * weight, 0.0, 1.0) * (seen - factor_);
}

}  // namespace perfd
