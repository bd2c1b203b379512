#include "agent/experiment/plan/run_schedule.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace perfd::agent {
namespace {

class Writer {
 public:
  explicit Writer(const ScheduleInput& request) : request_(request) {}

  void Run(int32_t variant, bool learn = false) {
    runs_.push_back({.variant = variant,
                     .evict = request_.evict,
                     .restore = request_.restore,
                     .learn = learn,
                     .successive = request_.at == RunsAt::kNextInstances,
                     .natural = request_.at == RunsAt::kArrivals});
  }
  // Unless the last run was one already.
  void Base(int32_t base) {
    if (runs_.empty() || runs_.back().variant != base) Run(base);
  }
  size_t size() const { return runs_.size(); }
  std::vector<RunSpec> Release() { return std::move(runs_); }

 private:
  const ScheduleInput& request_;
  std::vector<RunSpec> runs_;
};

// Variants may leave other values, and other lines changed, than the loop itself.
void Learn(const ScheduleInput& request, Writer& out) {
  std::set<int32_t> copies(request.variants.begin(), request.variants.end());
  copies.insert(request.bases.begin(), request.bases.end());
  for (const int32_t copy : copies) out.Run(copy, true);
}

void WriteRound(const ScheduleInput& request, const std::vector<size_t>& order, Writer& out) {
  for (const size_t i : order) {
    out.Base(request.bases[i]);
    out.Run(request.variants[i]);
    out.Run(request.bases[i]);
  }
}

}  // namespace

Schedule MakeSchedule(const ScheduleInput& request) {
  Schedule schedule;
  Writer out(request);
  if (request.restore && request.learn_ns > 0) Learn(request, out);
  const auto learning = static_cast<int64_t>(out.size());
  const int64_t learn_ns = learning * (request.learn_ns - request.run_ns);
  for (int i = 0; i < request.warm_ups; ++i)
    out.Run(request.bases.empty() ? 0 : request.bases.front());
  schedule.warm_ups = static_cast<int32_t>(out.size());
  std::vector<size_t> order(request.variants.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Variants of one base stay together: changing the base costs a run.
  std::mt19937_64 random(request.seed);
  const auto most = static_cast<size_t>(std::clamp(request.most, 1, kMostScheduled));
  while (schedule.rounds < std::max(1, request.rounds)) {
    std::shuffle(order.begin(), order.end(), random);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return request.bases[a] < request.bases[b]; });
    Writer round(request);
    WriteRound(request, order, round);
    const auto after = static_cast<int64_t>(out.size() + round.size());
    const bool fits =
        after * request.run_ns + learn_ns <= request.room_ns && out.size() + round.size() <= most;
    if (schedule.rounds > 0 && !fits) break;
    if (order.empty()) break;
    WriteRound(request, order, out);
    ++schedule.rounds;
  }
  schedule.runs = out.Release();
  schedule.predicted_ns = static_cast<int64_t>(schedule.runs.size()) * request.run_ns + learn_ns;
  return schedule;
}

}  // namespace perfd::agent
