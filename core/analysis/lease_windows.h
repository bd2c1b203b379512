// core/analysis/lease_windows.h - the windows of a pause lease, and the clocks by which nodes find them.
//
// Shape    PlanLease (daemon) -> windows by number; a loop that is entered rarely takes several windows as one: level k are 2^k
//          windows, beginning where the generation is a multiple of 2^k. ClockExchange: the best of the latest readings.
// Units    ns of job time, unless said "here" (a node's CLOCK_MONOTONIC).
// Threads  thread-safe (pure); ClockExchange thread-compatible.
// Source   reading: a question sent at s and answered at r brackets the answer, so the clock it tells is right for (s + r) / 2
//          within (r - s) / 2, whatever the way there and back took (Cristian 1989). Its error grows by kDrift: crystals are
//          within 50 ppm of true, two of them within twice that of each other.
#ifndef CORE_ANALYSIS_LEASE_WINDOWS_H_
#define CORE_ANALYSIS_LEASE_WINDOWS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "core/model/pause_lease.h"
#include "core/model/profile_spec.h"

namespace perfd {

inline constexpr double kDrift = 100e-6;
// A clock that may be off by more is not trusted: shadows pause for 5 ms and more, and must overlap.
inline constexpr int64_t kMostClockErrorNs = 2'000'000;
inline constexpr int kMostLevel = 5;

// The same for equal budgets, so that a restarted daemon goes on with the same windows.
PauseLease PlanLease(const BudgetSpec& budget, int32_t nodes);

int64_t ErrorAt(const ClockReading& reading, int64_t here_ns);
bool Trusted(const ClockReading& reading, int64_t here_ns);
int64_t JobTime(const ClockReading& reading, int64_t here_ns);
int64_t HereTime(const ClockReading& reading, int64_t job_ns);

struct LeaseWindow {
  uint64_t generation = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;  // no pause begins later

  bool operator==(const LeaseWindow&) const = default;
};

LeaseWindow WindowOf(const PauseLease& lease, uint64_t generation, int level);
// The first generation that begins at `job_ns` or later.
uint64_t NextGeneration(const PauseLease& lease, int64_t job_ns);
// The smallest level whose windows are at least this long; at most kMostLevel.
int LevelFor(const PauseLease& lease, int64_t wait_ns);

// Whose turn it is: in every generation each loop is first choice once in `loops` generations in a row, and the next ones
// follow in order. Nodes on which different loops are left agree on all that is left on both. `open`: may be asked in any
// order; none: nullopt.
std::optional<size_t> LoopOfGeneration(uint64_t generation, size_t loops,
                                       const std::function<bool(size_t)>& open);

class ClockExchange {
 public:
  static constexpr size_t kReadings = 16;

  // Asked at job time `sent_ns`, answered by `received_ns`. Nonsense is left out.
  void Learn(int64_t sent_ns, int64_t received_ns, int64_t here_ns);
  // The one that is the most exact now.
  std::optional<ClockReading> Best(int64_t job_ns) const;
  size_t readings() const { return readings_.size(); }

 private:
  std::deque<ClockReading> readings_;
};

}  // namespace perfd

#endif  // CORE_ANALYSIS_LEASE_WINDOWS_H_
