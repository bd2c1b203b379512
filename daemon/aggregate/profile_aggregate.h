// daemon/aggregate/profile_aggregate.h - everything measured by one profile, merged exactly.
//
// Shape    Add(window), Merge(other): integer sums and maxima of total orders, so any order and
//          grouping gives an equal value. Each window must be added once (ingest sees to it).
// Limits   the algebra is exact until a limit of AggregateLimits is reached. From then on totals,
//          categories, accounting and what is already known stay exact; what else is new loses
//          detail ("(other)" places, tid 0, missing cells, other call paths), counted in lost().
//          Which detail is lost then depends on the order.
// Units    see aggregate_state.h.
// Threads  thread-compatible: one writer, or readers only.
#ifndef DAEMON_AGGREGATE_PROFILE_AGGREGATE_H_
#define DAEMON_AGGREGATE_PROFILE_AGGREGATE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "core/analysis/share_interval.h"
#include "core/model/report.h"
#include "core/model/window.h"
#include "daemon/aggregate/aggregate_state.h"

namespace perfd::daemon {

// Memory at the default limits stays under about 1 GB; a job of 64,000 ranks with 12 loops each
// needs about 100 MB.
struct AggregateLimits {
  size_t locations = 20'000;
  size_t threads = 1'000'000;  // twice that with the folded ones (one per process)
  size_t cells = 8'000'000;
  size_t ranks = 1'000'000;
  size_t nodes = 65'536;
  size_t stacks = 100'000;
  size_t frame_names = 100'000;
  size_t calls = 100'000;
  MeasureLimits measured = {};
  MemoryLimits memory = {};
  bool frozen = false;  // what is known is not described any better
};

// Whether a place found none of its own.
bool IsFolded(const CodeLocation& location, const CodeLocation& kept);

class ProfileAggregate {
 public:
  explicit ProfileAggregate(AggregateLimits limits = {})
      : limits_(limits),
        paths_({limits.stacks, limits.frame_names, limits.ranks, limits.calls}),
        findings_(limits.measured, limits.memory) {}

  void Add(const Window& window);
  void Merge(const ProfileAggregate& other) { Absorb(other.State()); }

  // Of memory, about; looks at everything.
  size_t Bytes() const;
  // As if each limit was reached now.
  void Freeze();

  // The canonical value, and back. FromState: kDataLoss for indices outside their lists.
  AggregateState State() const;
  static absl::StatusOr<ProfileAggregate> FromState(const AggregateState& state,
                                                    AggregateLimits limits = {});
  bool operator==(const ProfileAggregate& other) const { return State() == other.State(); }

  // Reading. Indices are places in these vectors; their order is of no meaning.
  const std::vector<LocationTotals>& locations() const { return locations_; }
  size_t thread_count() const { return threads_.size(); }
  ThreadTotals thread(size_t index) const;
  // Threads of the same process have equal (node, rank, pid).
  uint32_t node_of_thread(size_t index) const { return threads_[index].key.node; }
  template <typename F>
  void ForEachCell(F visit) const {  // visit(thread, place, const Counts&)
    for (const auto& [key, counts] : cells_) {
      visit(static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key), counts);
    }
  }
  std::vector<RankTotals> ranks() const;
  const std::vector<NodeTotals>& nodes() const { return nodes_; }
  const PathTable& paths() const { return paths_; }
  const JobTotals& totals() const { return totals_; }
  const LostDetail& lost() const { return totals_.lost; }
  const Findings& findings() const { return findings_; }
  // The sums behind the interval of a place's share of CPU time, or of elapsed time.
  ClusterSums SumsOf(const LocationTotals& location, ShareBasis basis = ShareBasis::kCpu) const;

 private:
  struct ShortThread {
    uint32_t node = 0;
    int32_t rank = 0;
    int32_t pid = 0;
    int32_t tid = 0;

    bool operator==(const ShortThread&) const = default;
    template <typename H>
    friend H AbslHashValue(H state, const ShortThread& t) {
      return H::combine(std::move(state), t.node, t.rank, t.pid, t.tid);
    }
  };
  struct Thread {
    ShortThread key;
    Counts counts;
  };
  struct WindowIds;  // of one Add

  void Absorb(const AggregateState& state);

  uint32_t InternNode(const std::string& name);
  uint32_t InternLocation(const CodeLocation& location);
  uint32_t InternThread(const ShortThread& key);
  void AddCell(uint32_t thread, uint32_t location, const Counts& counts);
  void AddRank(RankTotals rank, uint32_t node);
  // A call of somebody else's: its places, and ours for each of his indices.
  void AddCall(const WindowCall& call, const CodeLocation& from, const CodeLocation* loop,
               const std::vector<uint32_t>& ours);
  void AddPaths(const Window& window);
  void AddRows(const Window& window, uint32_t node);
  void AddClusters(WindowIds& ids);
  void AddNode(const Window& window, uint32_t node);

  AggregateLimits limits_;
  std::vector<NodeTotals> nodes_;
  absl::flat_hash_map<std::string, uint32_t> node_index_;
  std::vector<LocationTotals> locations_;
  absl::flat_hash_map<std::string, uint32_t> location_index_;  // by LocationKey
  std::vector<Thread> threads_;
  absl::flat_hash_map<ShortThread, uint32_t> thread_index_;
  absl::flat_hash_map<uint64_t, Counts> cells_;         // thread << 32 | place
  absl::flat_hash_map<ShortThread, RankTotals> ranks_;  // tid 0
  PathTable paths_;
  JobTotals totals_;
  Findings findings_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_AGGREGATE_PROFILE_AGGREGATE_H_
