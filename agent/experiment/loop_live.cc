// How long instances take as the rank runs them. Short ones are timed in bursts.
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "agent/experiment/loop_experiment.h"
#include "core/analysis/cluster_median.h"

namespace perfd::agent {
namespace {

constexpr int32_t kLiveInstances = 15;
constexpr int32_t kLeastLive = 3;
constexpr double kMaybeShort = 4;  // first timings are too long
constexpr int32_t kBursts = 4;     // of live instances
constexpr int32_t kBurstInstances = 120;
constexpr absl::Duration kBetweenBursts = absl::Milliseconds(20);
constexpr int32_t kMostBurst = 400;        // of all threads of a team
constexpr int64_t kBurstNs = 200'000'000;  // for one of them
constexpr size_t kGroup = 10;  // live instances whose mean is taken, as that of a chain is

// Of the second half: while the branches of the copy that is timed are still unknown, a short instance takes several times as
// long as it does. The longest of each group is left out: an interrupt is not the loop's.
std::vector<uint64_t> GroupMeans(const std::vector<uint64_t>& burst) {
  std::vector<uint64_t> means;
  for (size_t at = burst.size() / 2; at + kGroup <= burst.size(); at += kGroup) {
    const auto from = burst.begin() + static_cast<std::ptrdiff_t>(at);
    const auto to = from + static_cast<std::ptrdiff_t>(kGroup);
    const uint64_t sum = std::accumulate(from, to, uint64_t{0}) - *std::max_element(from, to);
    means.push_back(sum / (kGroup - 1));
  }
  return means;
}

double Mean(const std::vector<uint64_t>& values) {
  const auto sum = static_cast<double>(std::accumulate(values.begin(), values.end(), uint64_t{0}));
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace

void LoopExperiment::RunLiveTiming(RankInjector& injector, const StepRoom& room) {
  auto ticks =
      injector.TimeLive(setup_.loop_to_inject, kLiveInstances * entry_count_.team, room.timeout_ns);
  if (!ticks.ok()) return Fail(ticks.status());
  live_.insert(live_.end(), ticks->begin(), ticks->end());
  if (static_cast<double>(Median(live_)) < kMaybeShort * kShortNs * setup_.ticks_per_ns)
    TimeShort(injector, room);
  if (static_cast<int32_t>(live_.size()) < kLeastLive)
    return Fail(absl::UnavailableError("the loop is entered too rarely to be timed"));
  live_cycles_ = static_cast<double>(Median(live_));
  failures_ = 0;
  const int64_t longest = LongestNs();
  if (3 * RunNs() > longest) {
    return Finish(
        MeasureState::kRefused,
        absl::StrFormat(
            "one instance takes %.0f ms; a shadow of three needs budget.shadow of %.0f ms",
            static_cast<double>(RunNs()) / 1e6,
            3 * static_cast<double>(RunNs()) / 1e6 / kShadowShare));
  }
  ChooseMode();
  ChooseBatch();
  if (in_situ_) {
    stage_ = Stage::kMeasure;
    return;
  }
  stage_ = shadows_ == 0 ? Stage::kProbe : Stage::kMeasure;
}

// In several bursts, since the job may be in another phase in each. Where calls are left out, a phase that calls in every pass
// has many entries and little to show: bursts of instances that are less than half as long as others do not count.
void LoopExperiment::TimeShort(RankInjector& injector, const StepRoom& room) {
  std::vector<std::vector<uint64_t>> bursts;
  double longest = 0;
  for (int i = 0; i < kBursts; ++i) {
    if (i > 0) absl::SleepFor(kBetweenBursts);
    const int32_t count = std::min(kBurstInstances * std::max(1, entry_count_.team), kMostBurst);
    auto ticks =
        injector.TimeLive(setup_.loop_to_inject, count, std::min(room.timeout_ns, kBurstNs));
    if (!ticks.ok()) return;
    bursts.push_back(GroupMeans(*ticks));
    longest = std::max(longest, Mean(bursts.back()));
  }
  std::vector<uint64_t> live;
  for (const std::vector<uint64_t>& burst : bursts) {
    if (installed_.excluded_paths.empty() || 2 * Mean(burst) >= longest)
      live.insert(live.end(), burst.begin(), burst.end());
  }
  if (!live.empty()) live_ = std::move(live);
}

}  // namespace perfd::agent
