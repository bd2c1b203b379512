#include "core/analysis/hot/until_known.h"

#include <algorithm>
#include <cmath>

namespace perfd {
namespace {

constexpr double kLeastDone = 0.05;  // before, the rest is not foretold

}  // namespace

UntilKnownLimits LimitsFor(const BudgetSpec& budget) {
  constexpr double kShadows = 3;
  UntilKnownLimits limits;
  if (budget.overhead_ratio <= 0) return limits;
  const double dear_ns = kShadows * static_cast<double>(budget.shadow_ns) / budget.overhead_ratio;
  const auto longest_ns = static_cast<double>(kLongestUntilKnownNs);
  limits.silent_ns =
      std::max(limits.silent_ns, static_cast<int64_t>(std::min(dear_ns, longest_ns)));
  return limits;
}

void UntilKnown::Restart(int64_t now_ns) {
  if (begun_ns_ != 0) same_ns_ = learnt_ns_ = now_ns;
}

void UntilKnown::Begin(int64_t now_ns) {
  if (begun_ns_ == 0) begun_ns_ = same_ns_ = learnt_ns_ = now_ns;
}

void UntilKnown::ChangeLoops(int64_t now_ns) {
  Begin(now_ns);
  same_ns_ = learnt_ns_ = now_ns;
  if (loops_ns_ == 0) loops_ns_ = now_ns;
}

void UntilKnown::Learn(uint64_t learnt, int64_t now_ns) {
  if (learnt != learnt_) learnt_ns_ = now_ns;
  learnt_ = learnt;
}

void UntilKnown::Know(std::span<const LoopLearning> hot, int64_t most_left_ns, int64_t now_ns) {
  Begin(now_ns);
  progress_ = {};
  uint64_t learnt = 0;
  for (const LoopLearning& loop : hot) {
    ++progress_.hot;
    if (loop.settled) ++progress_.known;
    progress_.done_ratio += loop.settled ? 1 : 1 - std::clamp(loop.open_ratio, 0.0, 1.0);
    learnt += loop.learnt + (loop.settled ? 1 : 0);
  }
  if (progress_.hot > 0)
    progress_.done_ratio = std::clamp(progress_.done_ratio / progress_.hot, 0.0, 1.0);
  Learn(learnt, now_ns);
  Estimate(loops_ns_, most_left_ns, now_ns);
}

void UntilKnown::KnowShares(const ShareKnowledge& shares, int64_t most_left_ns, int64_t now_ns) {
  Begin(now_ns);
  progress_ = {.hot = shares.hot};
  const bool known = shares.widest >= 0 && shares.widest <= limits_.share_reach;
  if (known) progress_.known = shares.hot;
  // An interval shrinks by the root of the samples.
  if (shares.hot > 0 && shares.widest >= 0)
    progress_.done_ratio = known ? 1 : std::pow(limits_.share_reach / shares.widest, 2);
  Learn(shares.samples, now_ns);
  Estimate(begun_ns_, most_left_ns, now_ns);
}

int64_t UntilKnown::LeastLeft(int64_t now_ns) const {
  return std::max<int64_t>(
      {0, begun_ns_ + limits_.least_ns - now_ns, same_ns_ + limits_.same_ns - now_ns});
}

// By going on as since then.
void UntilKnown::Estimate(int64_t since_ns, int64_t most_left_ns, int64_t now_ns) {
  const bool all = progress_.known == progress_.hot;
  if (progress_.hot == 0 || (!all && progress_.done_ratio < kLeastDone)) return;
  const double rest = all ? 0 : (1 - progress_.done_ratio) / progress_.done_ratio;
  const int64_t least_ns = LeastLeft(now_ns);
  const double left_ns = rest * static_cast<double>(now_ns - since_ns);
  progress_.left_ns =
      std::llround(std::clamp(left_ns, static_cast<double>(least_ns),
                              static_cast<double>(std::max(least_ns, most_left_ns))));
}

EndReason UntilKnown::End(int64_t now_ns) const {
  if (begun_ns_ == 0 || LeastLeft(now_ns) > 0) return EndReason::kNone;
  if (progress_.hot > 0 && progress_.known == progress_.hot) return EndReason::kKnown;
  return now_ns - learnt_ns_ >= limits_.silent_ns ? EndReason::kNothingLearnt : EndReason::kNone;
}

double UntilKnown::DoneRatio(int64_t now_ns) const {
  if (progress_.hot > 0 && progress_.known == progress_.hot && progress_.left_ns <= 0) return 1;
  if (begun_ns_ == 0 || progress_.left_ns <= 0) return 0;
  const double spent_ns = static_cast<double>(now_ns - begun_ns_);
  return spent_ns / (spent_ns + static_cast<double>(progress_.left_ns));
}

}  // namespace perfd
