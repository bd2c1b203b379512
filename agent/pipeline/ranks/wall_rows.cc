#include "agent/pipeline/ranks/wall_rows.h"

#include <cmath>
#include <map>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "core/base/clock.h"

namespace perfd::agent {
namespace {

Activity ActivityOf(const CodeLocation& location) {
  if (location.category == Category::kKernel) return Activity::kAsBefore;
  return location.loop_kind == LoopKind::kWaiting ? Activity::kWaits : Activity::kComputes;
}

// The ranks of a window. A helper is part of the first process that has its rank number.
class Teams {
 public:
  explicit Teams(const std::vector<ProcessTime>& processes) {
    for (const ProcessTime& process : processes) {
      if (process.helper) continue;
      const auto index = static_cast<uint32_t>(times_.size());
      by_pid_.emplace(process.pid, index);
      by_rank_.emplace(process.rank, index);
      times_.push_back({process.rank, process.pid, process.lived_ns, 0});
    }
    for (const ProcessTime& process : processes) {
      const RankTime* rank = Find(process.rank, process.pid);
      if (rank == nullptr) continue;
      for (const auto& [tid, thread] : process.threads) {
        threads_[tid] = thread;
        times_[static_cast<size_t>(rank - times_.data())].cpu_wait_ns += thread.wait_ns;
      }
    }
  }

  const std::vector<RankTime>& times() const { return times_; }
  // The number of the rank; one more for what belongs to none, which has no time.
  WallThread ThreadOf(const WindowThread& thread) const {
    const RankTime* rank = Find(thread.rank, thread.pid);
    WallThread out{.tid = thread.tid};
    out.rank = static_cast<uint32_t>(rank == nullptr ? times_.size()
                                                     : static_cast<size_t>(rank - times_.data()));
    if (const auto found = threads_.find(thread.tid); found != threads_.end()) {
      out.run_ns = found->second.run_ns;
      out.wait_ns = found->second.wait_ns;
    }
    return out;
  }

 private:
  const RankTime* Find(int32_t rank, int32_t pid) const {
    if (const auto found = by_pid_.find(pid); found != by_pid_.end()) return &times_[found->second];
    const auto found = by_rank_.find(rank);
    return found == by_rank_.end() ? nullptr : &times_[found->second];
  }

  std::vector<RankTime> times_;
  std::map<int32_t, uint32_t> by_pid_;
  std::map<int32_t, uint32_t> by_rank_;
  std::map<int32_t, ThreadTime> threads_;
};

// Clocks weigh ns; of other events only the number tells a time.
uint64_t CpuNsOf(const WindowRow& row, const SamplingSetup& setup) {
  const bool clock =
      absl::StartsWith(setup.event, "cpu-clock") || absl::StartsWith(setup.event, "task-clock");
  if (clock && row.weight > 0) return row.weight;
  return static_cast<uint64_t>(static_cast<double>(row.samples) * kNsPerSecond /
                               setup.frequency_hz);
}

}  // namespace

void FillWallTimes(const RawWindow& raw, const std::vector<uint32_t>& row_of, Window& window) {
  const WallEvidence& evidence = raw.wall;
  if (evidence.times == nullptr || !(evidence.period_ns > 0) || !(raw.setup.frequency_hz > 0))
    return;
  const Teams teams(evidence.processes);
  if (teams.times().empty()) return;
  WallWindow wall;
  wall.period_ns = evidence.period_ns;
  wall.duration_ns = raw.duration_ns;
  for (const RankTime& rank : teams.times()) wall.elapsed_ns.push_back(rank.elapsed_ns);
  wall.elapsed_ns.push_back(0);
  for (const WindowThread& thread : raw.threads) wall.threads.push_back(teams.ThreadOf(thread));
  std::vector<uint64_t> places;
  // Whatever the kernel does, who computes beside it is the same question.
  for (const CodeLocation& location : window.locations)
    places.push_back(location.category == Category::kKernel ? absl::HashOf(Category::kKernel)
                                                            : absl::HashOf(LocationKey(location)));
  for (const WindowRow& row : window.rows) {
    wall.rows.push_back({row.thread, places[row.location],
                         ActivityOf(window.locations[row.location]), CpuNsOf(row, raw.setup)});
  }
  for (const RawMoment& moment : evidence.moments)
    wall.moments.push_back({moment.time_ns, row_of[moment.row]});
  const std::vector<uint64_t> times = evidence.times->Divide(wall);
  for (size_t i = 0; i < times.size(); ++i) window.rows[i].wall_ns = times[i];
  window.rank_times = teams.times();
}

}  // namespace perfd::agent
