// What a shadow costs with and without the memory that its loop does not touch.
#include <algorithm>

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

constexpr int kTrace = 2;  // REF, COUNT, TRACE
constexpr int kRuns = 9;
constexpr int kAttempts = 10;
constexpr uint64_t kMostSwept = 1u << 30;

struct Costs {
  std::vector<double> fork, pause, run, sweep, faults;
};

absl::StatusOr<ShadowAnswer> RunShadow(RankInjector& injector, std::vector<RunSpec> runs,
                                       const std::optional<Footprint>& footprint) {
  ShadowRequest request;
  request.shadow_ns = 10 * kNsPerSecond;
  request.timeout_ns = 20 * kNsPerSecond;
  request.runs = std::move(runs);
  request.footprint = footprint;
  absl::StatusOr<ShadowAnswer> answer;
  for (int i = 0; i < kAttempts; ++i) {
    answer = injector.RunShadow(request);
    if (!absl::IsUnavailable(answer.status())) break;
  }
  RETURN_IF_ERROR(answer.status());
  for (const ShadowRun& run : answer->runs) {
    if (!run.ok) return absl::InternalError("a run in the shadow: " + run.failure);
  }
  return answer;
}

absl::StatusOr<Footprint> Probe(RankInjector& injector) {
  ASSIGN_OR_RETURN(const ShadowAnswer answer,
                   RunShadow(injector, {{.variant = 0}, {.variant = kTrace}}, std::nullopt));
  Footprint footprint;
  for (const std::vector<TraceRecord>& thread : answer.traces) {
    for (const TraceRecord& record : thread) {
      if (record.count > 0) footprint.ranges.push_back({record.lowest, record.highest + 8});
    }
  }
  return footprint;
}

absl::Status Observe(const BenchSetup& setup, BenchRank& rank, RankInjector& injector,
                     uint64_t swept, const std::optional<Footprint>& footprint, Costs* costs) {
  ASSIGN_OR_RETURN(const BenchRank::Sweep before, rank.SweepMemory(swept));
  absl::SleepFor(absl::Milliseconds(100));
  ASSIGN_OR_RETURN(const ShadowAnswer answer,
                   RunShadow(injector, std::vector<RunSpec>(kRuns), footprint));
  ASSIGN_OR_RETURN(const BenchRank::Sweep after, rank.SweepMemory(swept));
  std::vector<double> later;
  for (const ShadowRun& run : answer.runs) {
    if (run.run >= 2) later.push_back(static_cast<double>(run.cycles) / setup.ticks_per_ns);
  }
  costs->fork.push_back(static_cast<double>(answer.fork_ns) / 1e6);
  costs->pause.push_back(static_cast<double>(answer.pause_ns) / 1e6);
  costs->run.push_back(Median(later) / 1e6);
  costs->sweep.push_back(static_cast<double>(after.ns - before.ns) / 1e6);
  costs->faults.push_back(static_cast<double>(after.faults - before.faults));
  return absl::OkStatus();
}

absl::Status MeasureSize(const BenchSetup& setup, uint64_t bytes, bool huge,
                         const BenchTable& table) {
  RankShape shape;
  shape.trip = std::max<int64_t>(100'000, setup.working_set_bytes / 24);
  shape.bytes = bytes;
  shape.huge = huge;
  ASSIGN_OR_RETURN(const std::unique_ptr<BenchRank> rank, BenchRank::Start(shape));
  ASSIGN_OR_RETURN(std::unique_ptr<RankInjector> injector, rank->Install(InjectorOptionsOf(setup)));
  auto footprint = Probe(*injector);
  absl::Status status = footprint.status();
  Costs costs[2];
  double said[2] = {0, 0};
  const int repetitions = setup.quick ? 3 : 9;
  for (int i = 0; i < 2 * repetitions && status.ok(); ++i) {
    if (i >= 2 && OutOfTime(setup, "some shadows of this size")) break;
    const bool trim = i % 2 == 1;
    if (i < 2) {
      const ShadowPrediction prediction =
          trim ? injector->PredictTrimmed(*footprint, 1) : injector->PredictShadow();
      status = prediction.status;
      said[i] = static_cast<double>(prediction.fork_ns) / 1e6;
    }
    if (status.ok())
      status =
          Observe(setup, *rank, *injector, std::min(bytes, kMostSwept),
                  trim ? std::optional<Footprint>(*footprint) : std::nullopt, &costs[trim ? 1 : 0]);
  }
  RETURN_IF_ERROR(injector->Uninstall());
  RETURN_IF_ERROR(status);
  for (int i = 0; i < 2; ++i) {
    const Costs& c = costs[i];
    table.Row({static_cast<int64_t>(bytes >> 20), std::string(huge ? "huge" : "4k"),
               std::string(i == 0 ? "whole" : "narrow"), static_cast<int64_t>(c.fork.size()),
               Median(c.fork), said[i], Median(c.pause), Median(c.run), Median(c.sweep),
               Median(c.faults)});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BenchTrim(const BenchSetup& setup) {
  std::vector<int64_t> sizes = setup.megabytes;
  if (sizes.empty() && setup.quick) sizes = {256, 1024};
  if (sizes.empty()) sizes = {256, 1024, 2048, 4096};
  BenchTable table(
      "narrow",
      absl::StrFormat("Shadows of a whole rank and of what its loop touches, in turn; ms, medians: "
                      "a loop over %.1f MB",
                      static_cast<double>(setup.working_set_bytes) / (1 << 20)),
      {"memory_mb", "pages", "fork", "shadows", "fork_ms", "fork_said", "pause_ms", "run_ms",
       "sweep_ms", "sweep_faults"},
      setup.json);
  for (int64_t mb : sizes) {
    const uint64_t bytes = static_cast<uint64_t>(mb) << 20;
    if (bytes > MostBytes()) {
      PrintRemark(absl::StrFormat("%d MB: skipped, more than the memory that is available", mb),
                  setup.json);
      continue;
    }
    for (bool huge : {false, true}) {
      if (OutOfTime(setup, absl::StrFormat("%d MB", mb))) continue;
      const absl::Status status = MeasureSize(setup, bytes, huge, table);
      if (!status.ok())
        PrintRemark(absl::StrFormat("%d MB: %s", mb, status.ToString()), setup.json);
    }
  }
  PrintRemark(
      "sweep: the rank writes to every page of up to 1 GB, beyond the same before the shadow",
      setup.json);
  return absl::OkStatus();
}

}  // namespace perfd::agent
