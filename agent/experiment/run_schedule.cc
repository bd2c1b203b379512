#include "agent/experiment/run_schedule.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace perfd {
namespace {

class Writer {
 public:
  explicit Writer(const ScheduleWish& wish) : wish_(wish) {}

  void Run(int32_t variant, bool learn = false) {
    runs_.push_back(
        {.variant = variant, .evict = wish_.evict, .restore = wish_.restore, .learn = learn});
  }
  // Unless the last run was one already.
  void Base(int32_t base) {
    if (runs_.empty() || runs_.back().variant != base) Run(base);
  }
  size_t size() const { return runs_.size(); }
  std::vector<RunWish> Take() { return std::move(runs_); }

 private:
  const ScheduleWish& wish_;
  std::vector<RunWish> runs_;
};

// Variants may leave other values, and other lines changed, than the loop itself.
void Learn(const ScheduleWish& wish, Writer& out) {
  std::set<int32_t> copies(wish.variants.begin(), wish.variants.end());
  copies.insert(wish.bases.begin(), wish.bases.end());
  for (const int32_t copy : copies) out.Run(copy, true);
}

void WriteRound(const ScheduleWish& wish, const std::vector<size_t>& order, Writer& out) {
  for (const size_t i : order) {
    out.Base(wish.bases[i]);
    out.Run(wish.variants[i]);
    out.Run(wish.bases[i]);
  }
}

}  // namespace

Schedule MakeSchedule(const ScheduleWish& wish) {
  Schedule schedule;
  Writer out(wish);
  if (wish.restore && wish.learn_ns > 0) Learn(wish, out);
  const auto learning = static_cast<int64_t>(out.size());
  const int64_t learn_ns = learning * (wish.learn_ns - wish.run_ns);
  for (int i = 0; i < kWarmUps; ++i) out.Run(wish.bases.empty() ? 0 : wish.bases.front());
  schedule.warm_ups = static_cast<int32_t>(out.size());
  std::vector<size_t> order(wish.variants.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Variants of one base stay together: changing the base costs a run.
  std::mt19937_64 random(wish.seed);
  const auto most = static_cast<size_t>(std::clamp(wish.most, 1, kMostScheduled));
  while (schedule.rounds < std::max(1, wish.rounds)) {
    std::shuffle(order.begin(), order.end(), random);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return wish.bases[a] < wish.bases[b]; });
    Writer round(wish);
    WriteRound(wish, order, round);
    const auto after = static_cast<int64_t>(out.size() + round.size());
    const bool fits =
        after * wish.run_ns + learn_ns <= wish.room_ns && out.size() + round.size() <= most;
    if (schedule.rounds > 0 && !fits) break;
    if (order.empty()) break;
    WriteRound(wish, order, out);
    ++schedule.rounds;
  }
  schedule.runs = out.Take();
  schedule.predicted_ns = static_cast<int64_t>(schedule.runs.size()) * wish.run_ns + learn_ns;
  return schedule;
}

}  // namespace perfd
