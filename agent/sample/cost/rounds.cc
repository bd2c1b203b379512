#include "agent/sample/cost/rounds.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kMostNs = kNsPerSecond;  // no round begins later

double Undisturbed(std::vector<double>& values) {
  const auto low = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 8);
  std::nth_element(values.begin(), low, values.end());
  return *low;
}

}  // namespace

absl::StatusOr<double> CostFromRounds(absl::string_view what, std::vector<double> without,
                                      std::vector<double> with) {
  std::erase_if(without, [](double v) { return v < 0; });
  std::erase_if(with, [](double v) { return v < 0; });
  if (without.empty() || with.empty())
    return absl::DeadlineExceededError(
        absl::StrCat("the CPU is too busy to measure what ", what, " costs"));
  return std::max(0.0, Undisturbed(with) - Undisturbed(without));
}

absl::StatusOr<double> MeasureCost(absl::string_view what, int count,
                                   absl::FunctionRef<double()> without,
                                   absl::FunctionRef<absl::StatusOr<double>()> with) {
  std::vector<double> plain, sampled;
  const SystemClock clock;
  const int64_t end_ns = clock.MonotonicNs() + kMostNs;
  for (int i = 0; i < count && clock.MonotonicNs() < end_ns; ++i) {
    plain.push_back(without());
    ASSIGN_OR_RETURN(const double round, with());
    sampled.push_back(round);
  }
  return CostFromRounds(what, std::move(plain), std::move(sampled));
}

}  // namespace perfd::agent
