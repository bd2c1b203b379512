// How long a rank is held: each operation of the lab that stops it, over many repetitions.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/analysis/cluster_median.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "tests/bench/bench_rank.h"
#include "tests/bench/bench_table.h"
#include "tests/bench/injection_bench.h"

namespace perfd::agent {
namespace {

constexpr int64_t kAimNs = 20 * kNsPerMs;
constexpr int kToggles = 3;  // of the jump, per installation
constexpr int64_t kShapeNs = 40 * kNsPerSecond;

// One sample per operation: what its stops took together. Nearly always it is one stop.
struct Stops {
  std::map<std::string, std::vector<double>> ms;  // by operation
  int64_t operations = 0;
  uint64_t stops = 0;
  int64_t longest_ns = 0;  // of a single one
  int64_t failures = 0;
  std::string failure;  // the last

  void Add(const std::string& operation, int64_t ns) {
    ms[operation].push_back(static_cast<double>(ns) / 1e6);
    ++operations;
  }
  void Fail(const absl::Status& status) {
    ++failures;
    failure = status.ToString();
  }
};

// The time that one call held the rank.
template <typename Call>
absl::Status Timed(RankInjector& injector, const std::string& operation, Stops& stops, Call call) {
  const InjectionCost before = injector.cost();
  absl::Status status = call();
  if (injector.cost().stops > before.stops)
    stops.Add(operation, injector.cost().stop_ns - before.stop_ns);
  return status;
}

absl::Status Toggle(RankInjector& injector, Stops& stops) {
  for (int i = 0; i < kToggles; ++i) {
    RETURN_IF_ERROR(
        Timed(injector, "jump out", stops, [&] { return injector.SetPatched(0, false); }));
    RETURN_IF_ERROR(
        Timed(injector, "jump in", stops, [&] { return injector.SetPatched(0, true); }));
  }
  return absl::OkStatus();
}

// Install: a stop to map memory, another to write the jump; the audit log has each by itself. Arming stops nothing.
absl::Status OneRound(const BenchSetup& setup, const BenchRank& rank, Stops& stops) {
  bool installing = true;
  InjectorOptions options = InjectorOptionsOf(setup);
  options.audit = [&](const AuditEntry& entry) {
    const bool map = entry.action == "map";
    if (installing && entry.pause_ns > 0 && (map || entry.action == "install"))
      stops.Add(map ? "map" : "jump in", entry.pause_ns);
  };
  ASSIGN_OR_RETURN(std::unique_ptr<RankInjector> injector,
                   RankInjector::Open(rank.info(), options));
  ASSIGN_OR_RETURN(LoopToInject loop, rank.Loop());
  std::vector<LoopToInject> loops;
  loops.push_back(std::move(loop));
  auto installed = injector->Install(std::move(loops));
  installing = false;
  absl::Status status = installed.status();
  if (status.ok()) status = Toggle(*injector, stops);
  absl::Status out = Timed(*injector, "uninstall", stops, [&] { return injector->Uninstall(); });
  stops.stops += injector->cost().stops;
  stops.longest_ns = std::max(stops.longest_ns, injector->cost().longest_stop_ns);
  RETURN_IF_ERROR(out);
  return status;
}

void PrintStops(const RankShape& shape, const Stops& stops, const BenchTable& table) {
  std::vector<double> all;
  auto row = [&](const std::string& operation, std::vector<double> ms) {
    std::sort(ms.begin(), ms.end());
    const auto over = std::count_if(ms.begin(), ms.end(),
                                    [](double value) { return value * 1e6 > double{kAimNs}; });
    table.Row({int64_t{shape.threads}, static_cast<int64_t>(shape.bytes >> 20), operation,
               static_cast<int64_t>(ms.size()), SortedQuantile(ms, 0.5), SortedQuantile(ms, 0.99),
               ms.empty() ? 0 : ms.back(), int64_t{over}});
  };
  for (const auto& [operation, ms] : stops.ms) {
    row(operation, ms);
    all.insert(all.end(), ms.begin(), ms.end());
  }
  row("all", all);
}

}  // namespace

absl::Status BenchStops(const BenchSetup& setup) {
  BenchTable table(
      "stops", "Stops: how long a rank is held, ms (aim: p99 under 20)",
      {"threads", "rss_mb", "operation", "holds", "p50_ms", "p99_ms", "max_ms", "over_20ms"},
      setup.json);
  const uint64_t large = std::min<uint64_t>(MostBytes(), (setup.quick ? 256u : 1024u) << 20);
  const int64_t wanted = setup.quick ? 60 : 400;
  for (uint64_t bytes : {uint64_t{16} << 20, large}) {
    for (int threads : {1, 2, 8}) {
      RankShape shape;
      shape.threads = threads;
      shape.bytes = bytes;
      if (OutOfTime(setup, absl::StrFormat("stops with %d threads", threads))) break;
      ASSIGN_OR_RETURN(const std::unique_ptr<BenchRank> rank, BenchRank::Start(shape));
      Stops stops;
      const int64_t end = std::min(setup.deadline_ns, SystemClock().MonotonicNs() + kShapeNs);
      while (stops.operations < wanted && stops.failures < 20 &&
             SystemClock().MonotonicNs() < end) {
        const absl::Status status = OneRound(setup, *rank, stops);
        if (!status.ok()) stops.Fail(status);
      }
      PrintStops(shape, stops, table);
      if (stops.stops > static_cast<uint64_t>(stops.operations)) {
        PrintRemark(absl::StrFormat("%d operations took %d stops; the longest single one %.2f ms",
                                    stops.operations, stops.stops,
                                    static_cast<double>(stops.longest_ns) / 1e6),
                    setup.json);
      }
      if (stops.failures > 0)
        PrintRemark(absl::StrCat(stops.failures, " rounds failed, the last: ", stops.failure),
                    setup.json);
    }
  }
  PrintRemark("arming a shadow stops nothing: it is written to shared memory", setup.json);
  return absl::OkStatus();
}

}  // namespace perfd::agent
