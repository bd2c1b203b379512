#include "agent/wall/wall_times.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace perfd::agent {
namespace {

// Whether the program is in a stretch where others compute too is looked for so far around, in periods, and not within one.
constexpr double kCrowdReach = 20;
constexpr double kLeastSeen = 0.05;
constexpr double kBlur = 0.1;
// A thread that hardly ran tells little about what it wanted to run.
constexpr double kMostWaitRatio = 100;

// The samples of a window in the order of time, and which of them are of computing.
class Timelines {
 public:
  explicit Timelines(const WallWindow& window)
      : window_(window),
        moments_(window.moments),
        of_rank_(window.elapsed_ns.size()),
        of_thread_(window.threads.size()) {
    std::stable_sort(
        moments_.begin(), moments_.end(),
        [](const WallMoment& a, const WallMoment& b) { return a.time_ns < b.time_ns; });
    std::vector<Activity> before(window.threads.size(), Activity::kComputes);
    for (const WallMoment& moment : moments_) {
      const WallRow& row = window.rows[moment.row];
      if (row.activity != Activity::kAsBefore) before[row.thread] = row.activity;
      computes_.push_back(before[row.thread] == Activity::kComputes);
      if (!computes_.back()) continue;
      of_rank_[window.threads[row.thread].rank].push_back(moment.time_ns);
      of_thread_[row.thread].push_back(moment.time_ns);
    }
  }

  const std::vector<WallMoment>& moments() const { return moments_; }
  bool Computes(size_t moment) const { return computes_[moment]; }

  // Samples of other threads of the rank that compute, so near.
  double Others(const WallMoment& moment, double reach_ns) const {
    const uint32_t thread = window_.rows[moment.row].thread;
    return Near(of_rank_[window_.threads[thread].rank], moment.time_ns, reach_ns) -
           Near(of_thread_[thread], moment.time_ns, reach_ns);
  }

  // 0: alone, 1: with one more, 2: with two or three, ... Samples that tell of this very moment have no say: a crowd must
  // not be chosen by what is counted in it.
  int32_t CrowdAround(const WallMoment& moment) const {
    const double counted =
        Others(moment, kCrowdReach * window_.period_ns) - Others(moment, window_.period_ns);
    const double threads = counted / (2 * (kCrowdReach - 1));
    return threads < 0.5 ? 0 : 1 + static_cast<int32_t>(std::floor(std::log2(threads + 0.5)));
  }

 private:
  static double Near(const std::vector<uint64_t>& times, uint64_t at, double reach_ns) {
    const auto reach = static_cast<uint64_t>(reach_ns);
    const auto low = std::lower_bound(times.begin(), times.end(), at - std::min(at, reach));
    return static_cast<double>(std::distance(low, std::upper_bound(low, times.end(), at + reach)));
  }

  const WallWindow& window_;
  std::vector<WallMoment> moments_;
  std::vector<std::vector<uint64_t>> of_rank_;
  std::vector<std::vector<uint64_t>> of_thread_;
  std::vector<bool> computes_;
};

// The scheduler's own figure where it is known: samples are few, and events rest.
std::vector<double> CpuTimes(const WallWindow& window) {
  std::vector<double> of_thread(window.threads.size());
  for (const WallRow& row : window.rows) of_thread[row.thread] += static_cast<double>(row.cpu_ns);
  std::vector<double> times;
  for (const WallRow& row : window.rows) {
    const auto run_ns = static_cast<double>(window.threads[row.thread].run_ns);
    const double scale =
        run_ns > 0 && of_thread[row.thread] > 0 ? run_ns / of_thread[row.thread] : 1;
    times.push_back(static_cast<double>(row.cpu_ns) * scale);
  }
  return times;
}

// Parts that add up to more than the elapsed time are less sure the more they are shared: time that a thread had alone is its
// own whatever the others did.
void FitInto(const WallWindow& window, const std::vector<double>& cpu, std::vector<double>& wall) {
  const size_t ranks = window.elapsed_ns.size();
  std::vector<double> sums(ranks), shared(ranks);
  const auto shared_part = [&](size_t i) {
    return cpu[i] > 0 ? wall[i] * (1 - wall[i] / cpu[i]) : 0;
  };
  for (size_t i = 0; i < wall.size(); ++i) {
    const uint32_t rank = window.threads[window.rows[i].thread].rank;
    sums[rank] += wall[i];
    shared[rank] += shared_part(i);
  }
  std::vector<double> scale(ranks, 1), take(ranks);
  for (size_t rank = 0; rank < ranks; ++rank) {
    const auto elapsed = static_cast<double>(window.elapsed_ns[rank]);
    if (sums[rank] <= elapsed) continue;
    if (shared[rank] > 0) take[rank] = std::min(1.0, (sums[rank] - elapsed) / shared[rank]);
    scale[rank] = std::min(1.0, elapsed / (sums[rank] - take[rank] * shared[rank]));
  }
  for (size_t i = 0; i < wall.size(); ++i) {
    const uint32_t rank = window.threads[window.rows[i].thread].rank;
    wall[i] = (wall[i] - take[rank] * shared_part(i)) * scale[rank];
  }
}

// What the threads wanted to run in these rows while the rank computed nothing, and never more than the time that is left.
void AddWanted(const WallWindow& window, std::vector<double>& wall) {
  const size_t ranks = window.elapsed_ns.size();
  std::vector<double> computed(ranks), wanted(ranks);
  std::vector<double> of_row(wall.size());
  for (size_t i = 0; i < wall.size(); ++i) {
    const WallThread& thread = window.threads[window.rows[i].thread];
    if (thread.run_ns > 0) {
      const double ratio = static_cast<double>(thread.wait_ns) / static_cast<double>(thread.run_ns);
      of_row[i] = wall[i] * std::min(ratio, kMostWaitRatio);
    }
    computed[thread.rank] += wall[i];
    wanted[thread.rank] += of_row[i];
  }
  for (size_t i = 0; i < wall.size(); ++i) {
    const uint32_t rank = window.threads[window.rows[i].thread].rank;
    const double left =
        std::max(0.0, static_cast<double>(window.elapsed_ns[rank]) - computed[rank]);
    if (wanted[rank] > 0) wall[i] += of_row[i] * std::min(1.0, left / wanted[rank]);
  }
}

}  // namespace

void WallTimes::Forget(int64_t duration_ns) {
  const double keep =
      std::exp2(-static_cast<double>(std::max<int64_t>(0, duration_ns)) / kHalfLifeNs);
  for (auto& [key, seen] : seen_) {
    seen.samples *= keep;
    for (double& others : seen.others) others *= keep;
    for (double& pairs : seen.pairs) pairs *= keep;
  }
  absl::erase_if(seen_, [](const auto& entry) { return entry.second.samples < kLeastSeen; });
}

// The mean of 1 / threads that compute, over the moments of a key; `most`: other threads of the rank. With m others in the mean,
// and M where there are any (E[m^2] / E[m], as those see it who are there), there is company for m / M of the time.
// What is seen near is of this very moment, but there is little of it. Its difference from what is seen farther away counts as
// far as it is more than chance (positive-part James-Stein; Poisson variances).
double WallTimes::CrowdOf(const Seen& seen, double most) {
  constexpr size_t kMiddle = 1;  // of a triple within the narrow reach there is next to nothing
  constexpr double kTrust = 5;   // in that all come together
  return 1 + (seen.pairs[kMiddle] / (2 * kReach[kMiddle]) + kTrust * (most - 1)) /
                 (seen.others[kMiddle] + kTrust);
}

double WallTimes::PartOf(const Seen& seen, double most) {
  double company = 0;
  double variance = 0;
  for (size_t i = 0; i < kReach.size(); ++i) {
    const double chance = 2 * kReach[i];
    const double expected = seen.samples * chance;
    const double here = seen.others[i] / expected;
    const double variance_here = std::max(seen.others[i], 1.0) / (expected * expected);
    const double apart = (here - company) * (here - company);
    const double bias = std::max(0.0, apart - variance - variance_here);
    const double weight = i == 0 ? 1 : bias / (bias + variance_here);
    company += weight * (here - company);
    variance = i == 0 ? variance_here : variance * (1 - weight) + variance_here * weight;
  }
  const double crowd = std::clamp(std::max(company, CrowdOf(seen, most)), 1.0, std::max(1.0, most));
  // Around every change from one to the other some of both is seen on either side.
  const double seen_together = std::min(company / crowd, 1.0);
  const double together = std::clamp((seen_together - kBlur) / (1 - 2 * kBlur), 0.0, 1.0);
  return 1 - together * crowd / (1 + crowd);
}

// A stretch of the program is told apart only where it differs by what is seen within a whole period, too: the samples of two
// threads keep step for a while, and seem to have stretches then.
double WallTimes::PartAt(const Key& key, double most) const {
  const auto all = seen_.find({key.tid, key.place, kAnyCrowd});
  const auto here = seen_.find(key);
  if (all == seen_.end() || here == seen_.end()) return 1;
  const double wide_all = all->second.others[0] / all->second.samples;
  const double wide_here = here->second.others[0] / here->second.samples;
  const double larger = std::max(wide_all, wide_here);
  const double differ = larger > 0 ? std::abs(wide_here - wide_all) / larger : 0;
  const double weight = std::clamp(2 * differ - 0.5, 0.0, 1.0);
  return weight * PartOf(here->second, most) + (1 - weight) * PartOf(all->second, most);
}

void WallTimes::Record(const Key& key, const std::array<double, kReach.size()>& others) {
  if (seen_.size() >= kMostKeys && !seen_.contains(key)) return;
  Seen& seen = seen_[key];
  seen.samples += 1;
  for (size_t reach = 0; reach < kReach.size(); ++reach) {
    seen.others[reach] += others[reach];
    seen.pairs[reach] += others[reach] * (others[reach] - 1);
  }
}

// Of each row: as much of its CPU time as is its own, where moments are divided among those that compute.
std::vector<double> WallTimes::OwnTimes(const WallWindow& window, std::vector<double> times) {
  const Timelines timelines(window);
  const std::vector<WallMoment>& moments = timelines.moments();
  std::vector<double> most(window.elapsed_ns.size(), -1);  // other threads of the rank
  for (const WallThread& thread : window.threads) most[thread.rank] += 1;
  const auto most_at = [&](size_t i) {
    return most[window.threads[window.rows[moments[i].row].thread].rank];
  };
  std::vector<Key> keys(moments.size());
  for (size_t i = 0; i < moments.size(); ++i) {
    if (!timelines.Computes(i) || most_at(i) < 1) continue;
    const WallRow& row = window.rows[moments[i].row];
    keys[i] = {window.threads[row.thread].tid, row.place, timelines.CrowdAround(moments[i])};
    std::array<double, kReach.size()> others{};
    for (size_t reach = 0; reach < kReach.size(); ++reach)
      others[reach] = timelines.Others(moments[i], kReach[reach] * window.period_ns);
    Record(keys[i], others);
    Record({keys[i].tid, keys[i].place, kAnyCrowd}, others);
  }
  std::vector<double> parts(window.rows.size()), counts(window.rows.size());
  for (size_t i = 0; i < moments.size(); ++i) {
    counts[moments[i].row] += 1;
    if (timelines.Computes(i))
      parts[moments[i].row] += most_at(i) < 1 ? 1 : PartAt(keys[i], most_at(i));
  }
  for (size_t i = 0; i < times.size(); ++i) {
    const double unseen = window.rows[i].activity == Activity::kWaits ? 0 : 1;
    times[i] *= counts[i] > 0 ? parts[i] / counts[i] : unseen;
  }
  return times;
}

std::vector<uint64_t> WallTimes::Divide(const WallWindow& window) {
  Forget(window.duration_ns);
  const std::vector<double> cpu = CpuTimes(window);
  std::vector<double> wall = OwnTimes(window, cpu);
  FitInto(window, cpu, wall);
  AddWanted(window, wall);
  std::vector<uint64_t> rounded;
  rounded.reserve(wall.size());
  for (const double ns : wall) rounded.push_back(static_cast<uint64_t>(std::max(0.0, ns)));
  return rounded;
}

}  // namespace perfd::agent
