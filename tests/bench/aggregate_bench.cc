// The daemon's cost per window, and of a report and a live view of a large job.
#include <benchmark/benchmark.h>

#include "absl/strings/str_cat.h"
#include "core/wire/wire.h"
#include "daemon/aggregate/aggregate_codec.h"
#include "daemon/aggregate/profile_aggregate.h"
#include "daemon/report/report_builder.h"
#include "daemon/report/top_loops.h"

namespace perfd::daemon {
namespace {

constexpr int kRanksPerNode = 64;
constexpr int kLoops = 12;

// 64 ranks x 12 loops: what one node sends every 5 s.
Window NodeWindow(int node) {
  Window window;
  window.profile_id = "p-000001";
  window.node = absl::StrCat("node", node);
  window.stream_id = absl::StrCat("stream", node);
  window.sequence = 1;
  window.duration_ns = 5'000'000'000;
  window.setup = {"cpu-clock", 199, true, "per-thread", Provenance::kSampled};
  for (int i = 0; i < kLoops; ++i) {
    CodeLocation location;
    location.category = Category::kLoop;
    location.module_id = "0123456789abcdef0123456789abcdef01234567";
    location.module_path = "/home/user/project/build/application";
    location.function = absl::StrCat("solver::Kernel", i, "(double*, int)");
    location.function_low = 0x401000;
    location.loop.emplace();
    location.loop->header = 0x401000 + static_cast<uint64_t>(i) * 64;
    location.source = {"/home/user/project/solver.cc", 10 + i, 20 + i};
    window.locations.push_back(location);
  }
  for (int r = 0; r < kRanksPerNode; ++r) {
    const int rank = node * kRanksPerNode + r;
    RankInfo info;
    info.node = window.node;
    info.rank = rank;
    info.pid = 1000 + r;
    window.ranks.push_back(info);
    window.threads.push_back({rank, 1000 + r, 1000 + r});
    for (int l = 0; l < kLoops; ++l) {
      window.rows.push_back({static_cast<uint32_t>(r), static_cast<uint32_t>(l), 80, 400'000'000});
    }
  }
  return window;
}

ProfileAggregate WholeJob(int nodes) {
  ProfileAggregate aggregate;
  for (int node = 0; node < nodes; ++node) aggregate.Add(NodeWindow(node));
  return aggregate;
}

void BM_AddWindowToALargeJob(benchmark::State& state) {
  ProfileAggregate aggregate = WholeJob(1000);
  const Window window = NodeWindow(500);
  for (auto _ : state) aggregate.Add(window);
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(window.rows.size()));
}
BENCHMARK(BM_AddWindowToALargeJob)->Unit(benchmark::kMicrosecond);

void BM_DecodeWindow(benchmark::State& state) {
  const std::string bytes = wire::ToProto(NodeWindow(1)).SerializeAsString();
  for (auto _ : state) {
    v1::Window message;
    if (!message.ParseFromString(bytes) || !wire::FromProto(message).ok())
      state.SkipWithError("a valid window was refused");
  }
  state.counters["bytes"] = static_cast<double>(bytes.size());
}
BENCHMARK(BM_DecodeWindow)->Unit(benchmark::kMicrosecond);

void BM_TopLoops(benchmark::State& state) {
  const ProfileAggregate aggregate = WholeJob(1000);
  for (auto _ : state) benchmark::DoNotOptimize(TopLoops(aggregate, 10));
}
BENCHMARK(BM_TopLoops)->Unit(benchmark::kMicrosecond);

void BM_ReportOf64000Ranks(benchmark::State& state) {
  const ProfileAggregate aggregate = WholeJob(1000);
  for (auto _ : state) benchmark::DoNotOptimize(BuildReport({}, aggregate));
}
BENCHMARK(BM_ReportOf64000Ranks)->Unit(benchmark::kMillisecond);

void BM_SerializeAggregateOf64000Ranks(benchmark::State& state) {
  const ProfileAggregate aggregate = WholeJob(1000);
  size_t bytes = 0;
  for (auto _ : state) bytes = SerializeAggregate(aggregate).size();
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(BM_SerializeAggregateOf64000Ranks)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace perfd::daemon

BENCHMARK_MAIN();
