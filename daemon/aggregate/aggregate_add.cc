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

// Says less than any other description of the rank.
RankInfo InfoOf(const RankTime& time) {
  RankInfo info;
  info.rank = time.rank;
  info.pid = time.pid;
  info.world_size = 0;
  return info;
}

uint64_t MilliHertz(double frequency_hz) {
  return frequency_hz > 0 ? static_cast<uint64_t>(std::llround(frequency_hz * 1000)) : 0;
}

}  // namespace

struct ProfileAggregate::WindowIds {
  struct Hit {
    uint32_t cluster;
    uint32_t location;
    uint64_t ns;
  };
  // Of CPU time a cluster is a process, of elapsed time a rank with its children.
  struct Clusters {
    std::vector<uint32_t> of_thread;  // of each thread of the window; kNone: of nobody
    std::vector<uint64_t> ns;
    std::vector<Hit> hits;
  };
  std::vector<uint32_t> thread;  // window index -> ours; kNone: not needed so far
  std::vector<uint32_t> location;
  Clusters cpu;
  Clusters wall;
};

namespace {

// Numbers the processes of the window; threads of one process are one cluster.
template <typename Clusters>
void NumberProcesses(const Window& window, Clusters& clusters) {
  absl::flat_hash_map<std::pair<int32_t, int32_t>, uint32_t> numbers;
  for (const WindowThread& thread : window.threads) {
    const auto next = static_cast<uint32_t>(numbers.size());
    clusters.of_thread.push_back(
        numbers.try_emplace({thread.rank, thread.pid}, next).first->second);
  }
  clusters.ns.resize(numbers.size());
}

// The process itself, else the first of its rank: a child's parent.
template <typename Clusters>
void NumberRanks(const Window& window, Clusters& clusters) {
  absl::flat_hash_map<std::pair<int32_t, int32_t>, uint32_t> processes;
  absl::flat_hash_map<int32_t, uint32_t> ranks;
  for (const RankTime& time : window.rank_times) {
    const auto next = static_cast<uint32_t>(clusters.ns.size());
    processes.try_emplace({time.rank, time.pid}, next);
    ranks.try_emplace(time.rank, next);
    clusters.ns.push_back(time.elapsed_ns);
  }
  for (const WindowThread& thread : window.threads) {
    const auto process = processes.find({thread.rank, thread.pid});
    const auto rank = ranks.find(thread.rank);
    const uint32_t parent = rank == ranks.end() ? kNone : rank->second;
    clusters.of_thread.push_back(process == processes.end() ? parent : process->second);
  }
}

// add(location, ns in this place of one cluster, ns of the cluster)
template <typename Clusters, typename Add>
void ForEachSum(Clusters& clusters, Add add) {
  auto& hits = clusters.hits;
  std::sort(hits.begin(), hits.end(), [](const auto& a, const auto& b) {
    return std::tie(a.cluster, a.location) < std::tie(b.cluster, b.location);
  });
  for (size_t i = 0; i < hits.size();) {
    const auto first = hits[i];
    absl::uint128 y = 0;
    for (;
         i < hits.size() && hits[i].cluster == first.cluster && hits[i].location == first.location;
         ++i) {
      y += hits[i].ns;
    }
    add(first.location, y, clusters.ns[first.cluster]);
  }
}

}  // namespace

void ProfileAggregate::AddRows(const Window& window, uint32_t node) {
  WindowIds ids;
  ids.thread.resize(window.threads.size(), kNone);
  ids.location.resize(window.locations.size(), kNone);
  ids.cpu.hits.reserve(window.rows.size());
  NumberProcesses(window, ids.cpu);
  NumberRanks(window, ids.wall);
  RowTime time(window.setup);

  for (const WindowRow& row : window.rows) {
    const WindowThread& from = window.threads[row.thread];
    const CodeLocation& location = window.locations[row.location];
    const ShortThread key{node, from.rank, from.pid, from.tid};
    uint32_t& thread = ids.thread[row.thread];
    if (thread == kNone) thread = InternThread(key);
    uint32_t& index = ids.location[row.location];
    if (index == kNone) index = InternLocation(location);
    if (!(threads_[thread].key == key)) totals_.lost.thread_samples += row.samples;
    if (IsFolded(location, locations_[index].location))
      totals_.lost.location_samples += row.samples;

    const Counts counts{row.samples, row.weight, time.TimeOf(row), row.wall_ns};
    LocationTotals& totals = locations_[index];
    totals.counts += counts;
    totals.ww += counts.Squares();
    totals_.ww += counts.Squares();
    totals.wall.ww += counts.WallSquares();
    totals_.wall.ww += counts.WallSquares();
    totals_.samples += counts.samples;
    if (row.samples > 0) totals.Span(window.start_unix_ns, EndOf(window));
    threads_[thread].counts += counts;
    AddCell(thread, index, counts);
    const uint32_t process = ids.cpu.of_thread[row.thread];
    ids.cpu.ns[process] += counts.cpu_ns;
    ids.cpu.hits.push_back({process, index, counts.cpu_ns});
    const uint32_t rank = ids.wall.of_thread[row.thread];
    if (rank != kNone) ids.wall.hits.push_back({rank, index, counts.wall_ns});
  }
  AddClusters(ids);
  if (!window.rows.empty() && window.rank_times.empty()) ++totals_.wall.undivided;
}

void ProfileAggregate::AddClusters(WindowIds& ids) {
  ForEachSum(ids.cpu, [this](uint32_t location, absl::uint128 y, uint64_t x) {
    locations_[location].yy += y * y;
    locations_[location].xy += y * x;
  });
  ForEachSum(ids.wall, [this](uint32_t location, absl::uint128 y, uint64_t x) {
    locations_[location].wall.yy += y * y;
    locations_[location].wall.xy += y * x;
  });
  for (uint64_t x : ids.cpu.ns) {
    if (x == 0) continue;
    ++totals_.clusters;
    totals_.cpu_ns += x;
    totals_.xx += absl::uint128(x) * x;
  }
  for (uint64_t x : ids.wall.ns) {
    if (x == 0) continue;
    ++totals_.wall.clusters;
    totals_.wall.elapsed_ns += x;
    totals_.wall.xx += absl::uint128(x) * x;
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

void ProfileAggregate::AddPaths(const Window& window) {
  std::vector<const std::string*> frames;
  for (const WindowStack& stack : window.paths.stacks) {
    frames.clear();
    for (uint32_t frame : stack.frames) frames.push_back(&window.paths.frame_names[frame]);
    totals_.lost.stack_samples += paths_.AddStack(stack.rank, frames, stack.samples);
  }
  std::vector<uint32_t> locations(window.locations.size(), kNone);
  const auto intern = [&](uint32_t index) {
    if (locations[index] == kNone) locations[index] = InternLocation(window.locations[index]);
  };
  for (const WindowCall& call : window.paths.calls) {
    intern(call.location);
    if (call.loop.has_value()) intern(*call.loop);
    AddCall(call, window.locations[call.location],
            call.loop.has_value() ? &window.locations[*call.loop] : nullptr, locations);
  }
}

void ProfileAggregate::Add(const Window& window) {
  const uint32_t node = InternNode(window.node);
  AddNode(window, node);
  for (const RankInfo& rank : window.ranks) AddRank({rank}, node);
  for (const RankTime& time : window.rank_times) {
    AddRank({InfoOf(time), time.elapsed_ns, time.cpu_wait_ns}, node);
    totals_.wall.cpu_wait_ns += time.cpu_wait_ns;
  }
  AddRows(window, node);
  AddPaths(window);
  totals_.accounting += window.accounting;
  totals_.overhead += window.overhead;
  std::vector<uint32_t> place(window.locations.size(), kNone);
  for (const MemoryRow& row : window.findings.memory.rows) {
    if (place[row.location] == kNone)
      place[row.location] = InternLocation(window.locations[row.location]);
  }
  findings_.Add(window, place);
}

}  // namespace perfd::daemon
