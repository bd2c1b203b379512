// agent/wall/wall_times.h - the elapsed time of ranks, divided among what their threads compute.
//
// Shape    one for each session: Divide(window) -> the elapsed time of each row. At each moment a rank's time is divided equally
//          among its threads that compute; moments without any are nobody's: waiting or idle.
// Units    ns of the monotonic clock; ns of CPU time.
// Rules    two threads are seen together by samples that are close in time: rings sample at periods of their own
//          (agent/sample/sampling_event.h, StaggeredRate), so a thread that computes beside a sample has one of its own within
//          +-e of it with the probability 2e / period. Running, sleeping and spinning need not be told apart.
//          What a thread wanted a CPU for counts as its rows' time as far as the rank computed nothing else meanwhile.
// Bounds   the rows of a rank never have more than its elapsed time. kMostKeys keys; without a place: as if alone.
// Threads  thread-compatible.
// Source   docs/adr/0030-shares-by-wall-time.md; pair correlation of point processes: Ripley, Spatial Statistics (1981), 8.2.
#ifndef AGENT_WALL_WALL_TIMES_H_
#define AGENT_WALL_WALL_TIMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace perfd::agent {

enum class Activity : uint8_t {
  kComputes,
  kWaits,
  kAsBefore,  // the kernel: for whatever its thread did in the sample before
};

struct WallThread {
  int32_t tid = 0;
  uint32_t rank = 0;     // index into WallWindow::elapsed_ns
  uint64_t run_ns = 0;   // by the scheduler, in this window; 0: not known
  uint64_t wait_ns = 0;  // wanted a CPU
};

struct WallRow {
  uint32_t thread = 0;  // index into WallWindow::threads
  uint64_t place = 0;   // the same in all windows
  Activity activity = Activity::kComputes;
  uint64_t cpu_ns = 0;  // that its samples stand for
};

// One sample.
struct WallMoment {
  uint64_t time_ns = 0;
  uint32_t row = 0;  // index into WallWindow::rows
};

struct WallWindow {
  std::vector<uint64_t> elapsed_ns;  // of each rank
  std::vector<WallThread> threads;
  std::vector<WallRow> rows;
  std::vector<WallMoment> moments;  // in any order; may lack some
  double period_ns = 0;  // of CPU time between two samples of a thread while events are on
  int64_t duration_ns = 0;
};

class WallTimes {
 public:
  static constexpr size_t kMostKeys = 1 << 18;
  // Half of what was seen together is forgotten in this time.
  static constexpr double kHalfLifeNs = 20e9;

  // Of each row of the window, ns.
  std::vector<uint64_t> Divide(const WallWindow& window);

 private:
  // How far samples may be apart to be together, in periods; from wide to narrow.
  static constexpr std::array<double, 3> kReach = {1, 0.1, 0.01};

  static constexpr int32_t kAnyCrowd = -1;
  struct Key {
    int32_t tid = 0;
    uint64_t place = 0;
    int32_t crowd = 0;  // how many others compute in this stretch of the program

    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.tid, key.place, key.crowd);
    }
  };
  struct Seen {
    double samples = 0;
    // Within each reach: samples of other threads that computed, and ordered pairs of two of them.
    std::array<double, kReach.size()> others{};
    std::array<double, kReach.size()> pairs{};
  };
  void Forget(int64_t duration_ns);
  void Record(const Key& key, const std::array<double, kReach.size()>& others);
  double PartAt(const Key& key, double most) const;
  static double CrowdOf(const Seen& seen, double most);
  static double PartOf(const Seen& seen, double most);
  std::vector<double> OwnTimes(const WallWindow& window, std::vector<double> cpu);

  absl::flat_hash_map<Key, Seen> seen_;
};

}  // namespace perfd::agent

#endif  // AGENT_WALL_WALL_TIMES_H_
