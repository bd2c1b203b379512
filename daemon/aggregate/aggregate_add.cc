// One window into the sums.
#include <algorithm>
#include <cmath>

#include "daemon/aggregate/profile_aggregate.h"
#include "daemon/aggregate/row_time.h"

namespace perfd::daemon {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// Foreign figures must not overflow.
int64_t EndOf(const Window& window) {
  const int64_t room = INT64_MAX - std::max<int64_t>(window.start_unix_ns, 0);
  return window.start_unix_ns + std::clamp<int64_t>(window.duration_ns, 0, room);
}

uint64_t MilliHertz(double frequency_hz) {
  return frequency_hz > 0 ? static_cast<uint64_t>(std::llround(frequency_hz * 1000)) : 0;
}

}  // namespace

struct ProfileAggregate::WindowIds {
  struct Hit {
    uint32_t cluster;
    uint32_t location;
    uint64_t cpu_ns;
  };
  std::vector<uint32_t> thread;  // window index -> ours; kNone: not needed so far
  std::vector<uint32_t> location;
  std::vector<uint32_t> cluster;  // of each thread of the window
  std::vector<uint64_t> cluster_ns;
  std::vector<Hit> hits;
};

namespace {

// Numbers the processes of the window; threads of one process are one cluster.
template <typename Ids>
void NumberClusters(const Window& window, Ids& ids) {
  absl::flat_hash_map<std::pair<int32_t, int32_t>, uint32_t> numbers;
  for (const WindowThread& thread : window.threads) {
    const auto next = static_cast<uint32_t>(numbers.size());
    ids.cluster.push_back(numbers.try_emplace({thread.rank, thread.pid}, next).first->second);
  }
  ids.cluster_ns.resize(numbers.size());
}

}  // namespace

void ProfileAggregate::AddRows(const Window& window, uint32_t node) {
  WindowIds ids;
  ids.thread.resize(window.threads.size(), kNone);
  ids.location.resize(window.locations.size(), kNone);
  ids.hits.reserve(window.rows.size());
  NumberClusters(window, ids);
  RowTime time(window.setup);

  for (const WindowRow& row : window.rows) {
    const WindowThread& from = window.threads[row.thread];
    const CodeLocation& location = window.locations[row.location];
    const ShortThread key{node, from.rank, from.pid, from.tid};
    uint32_t& thread = ids.thread[row.thread];
    if (thread == kNone) thread = InternThread(key);
    uint32_t& index = ids.location[row.location];
    if (index == kNone) index = InternLocation(location);
    if (ThreadFolded(key, thread)) totals_.lost.thread_samples += row.samples;
    if (LocationFolded(location, index)) totals_.lost.location_samples += row.samples;

    const Counts counts{row.samples, row.weight, time.TimeOf(row)};
    locations_[index].counts += counts;
    const absl::uint128 squares = counts.Squares();
    locations_[index].ww += squares;
    totals_.ww += squares;
    totals_.samples += counts.samples;
    if (row.samples > 0) locations_[index].Span(window.start_unix_ns, EndOf(window));
    threads_[thread].counts += counts;
    AddCell(thread, index, counts);
    ids.cluster_ns[ids.cluster[row.thread]] += counts.cpu_ns;
    ids.hits.push_back({ids.cluster[row.thread], index, counts.cpu_ns});
  }
  std::sort(ids.hits.begin(), ids.hits.end(), [](const auto& a, const auto& b) {
    return std::tie(a.cluster, a.location) < std::tie(b.cluster, b.location);
  });
  AddClusters(ids);
}

void ProfileAggregate::AddClusters(const WindowIds& ids) {
  for (size_t i = 0; i < ids.hits.size();) {
    const WindowIds::Hit& first = ids.hits[i];
    absl::uint128 y = 0;
    for (; i < ids.hits.size() && ids.hits[i].cluster == first.cluster &&
           ids.hits[i].location == first.location;
         ++i) {
      y += ids.hits[i].cpu_ns;
    }
    locations_[first.location].yy += y * y;
    locations_[first.location].xy += y * ids.cluster_ns[first.cluster];
  }
  for (uint64_t x : ids.cluster_ns) {
    if (x == 0) continue;
    ++totals_.clusters;
    totals_.cpu_ns += x;
    totals_.xx += absl::uint128(x) * x;
  }
}

void ProfileAggregate::AddNode(const Window& window, uint32_t node) {
  NodeTotals totals;
  totals.windows = 1;
  totals.covered_ns = static_cast<uint64_t>(std::max<int64_t>(window.duration_ns, 0));
  totals.frequency_span = absl::uint128(MilliHertz(window.setup.frequency_hz)) * totals.covered_ns;
  totals.setup = window.setup;
  totals.last_start_unix_ns = window.start_unix_ns;
  totals.last_sequence = window.sequence;
  totals.last_stream_id = window.stream_id;
  nodes_[node] += totals;
}

void ProfileAggregate::Add(const Window& window) {
  const uint32_t node = InternNode(window.node);
  AddNode(window, node);
  for (const RankInfo& rank : window.ranks) AddRank(rank, node);
  AddRows(window, node);
  std::vector<const std::string*> frames;
  for (const WindowStack& stack : window.stacks) {
    frames.clear();
    for (uint32_t frame : stack.frames) frames.push_back(&window.frame_names[frame]);
    AddStack(stack.rank, frames, stack.samples);
  }
  totals_.accounting += window.accounting;
  totals_.overhead += window.overhead;
  for (const LoopMeasurement& loop : window.measurements) measured_.Add(loop);
  for (const AuditEntry& entry : window.audit) measured_.AddAudit(entry);
  measured_.AddLeased(window.node, window.pauses, window.pauses_dropped);
}

}  // namespace perfd::daemon
