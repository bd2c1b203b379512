// What a shadow costs the rank by the size of its memory and of its pages, and what 2 % of the wall time buys of it.
#include <algorithm>
#include <optional>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "agent/shadow/forking/memory_walk.h"
#include "core/analysis/cluster_median.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "tests/bench/bench_rank.h"
#include "tests/bench/bench_table.h"
#include "tests/bench/injection_bench.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kMostSwept = 1u << 30;  // larger memories are extrapolated from this
constexpr int kRuns = 9;  // of REF in one shadow; the first makes what it writes its own
constexpr int64_t kShadowNs = 10 * kNsPerSecond;
constexpr int64_t kEntryNs = 20 * kNsPerSecond;
constexpr int kAttempts = 10;
constexpr double kBudget = 0.02;

// One shadow and what followed; ns.
struct OneShadow {
  double pause = 0;
  double fork = 0;
  double privatise = 0;  // first run - a later one
  double run = 0;        // median of the later ones
  double rest = 0;       // setting up, ending, reaping
  double instance = 0;   // what the next instance took longer than usual
  double instance_faults = 0;
  double sweep = 0;  // what writing to all (swept) memory took longer than without a shadow
  double sweep_faults = 0;
};

struct MemoryCost {
  std::vector<OneShadow> shadows;
  uint64_t bytes = 0, swept = 0;
  MemoryFacts facts;  // before the first shadow
  MemoryFacts facts_after;
  int64_t predicted_fork_ns = 0, predicted_later_ns = 0;

  // p: member of OneShadow.
  double Middle(double OneShadow::*p) const {
    std::vector<double> values;
    for (const OneShadow& shadow : shadows) values.push_back(shadow.*p);
    return Median(values);
  }
  double Most(double OneShadow::*p) const {
    double most = 0;
    for (const OneShadow& shadow : shadows) most = std::max(most, shadow.*p);
    return most;
  }
  // As if all memory had been swept.
  double SweepNs() const {
    return Middle(&OneShadow::sweep) * static_cast<double>(bytes) / static_cast<double>(swept);
  }
};

absl::StatusOr<ShadowAnswer> RunShadow(RankInjector& injector) {
  ShadowRequest request;
  request.shadow_ns = kShadowNs;
  request.timeout_ns = kEntryNs;
  request.runs.resize(kRuns);
  absl::StatusOr<ShadowAnswer> answer;
  for (int i = 0; i < kAttempts; ++i) {
    answer = injector.RunShadow(request);
    if (!absl::IsUnavailable(answer.status())) break;
  }
  RETURN_IF_ERROR(answer.status());
  for (const ShadowRun& run : answer->runs) {
    if (!run.ok) return absl::InternalError("a run in the shadow: " + run.failure);
  }
  if (answer->runs.size() != kRuns) return absl::InternalError("the shadow: " + answer->outcome);
  return answer;
}

// The instance that was held up by the pause, once it is over.
absl::StatusOr<bench_pass> PassOf(const BenchRank& rank, const ShadowAnswer& answer) {
  const int64_t deadline = SystemClock().MonotonicNs() + 10 * kNsPerSecond;
  const int64_t middle = answer.pause_begin_ns + answer.pause_ns / 2;
  while (SystemClock().MonotonicNs() < deadline) {
    ASSIGN_OR_RETURN(const std::vector<bench_pass> passes, rank.Passes());
    for (const bench_pass& pass : passes) {
      if (pass.begin_ns <= middle && middle < pass.end_ns) return pass;
    }
    absl::SleepFor(absl::Milliseconds(2));
  }
  return absl::NotFoundError("no instance of the loop was held up");
}

bench_pass Usual(const std::vector<bench_pass>& passes) {
  std::vector<double> ns, faults;
  for (const bench_pass& pass : passes) {
    ns.push_back(static_cast<double>(pass.end_ns - pass.begin_ns));
    faults.push_back(static_cast<double>(pass.faults));
  }
  return {0, static_cast<int64_t>(Median(ns)), static_cast<int64_t>(Median(faults))};
}

// Sweep, shadow, sweep: the second sweep pays for what the fork write-protected.
absl::StatusOr<OneShadow> Observe(const BenchSetup& setup, BenchRank& rank, RankInjector& injector,
                                  uint64_t swept) {
  ASSIGN_OR_RETURN(const BenchRank::Sweep before, rank.SweepMemory(swept));
  absl::SleepFor(absl::Milliseconds(100));
  ASSIGN_OR_RETURN(const std::vector<bench_pass> passes, rank.Passes());
  const bench_pass usual = Usual(passes);
  ASSIGN_OR_RETURN(const ShadowAnswer answer, RunShadow(injector));
  ASSIGN_OR_RETURN(const bench_pass held, PassOf(rank, answer));
  ASSIGN_OR_RETURN(const BenchRank::Sweep after, rank.SweepMemory(swept));
  std::vector<double> later;
  double first = 0, sum = 0;
  for (const ShadowRun& run : answer.runs) {
    const double ns = static_cast<double>(run.cycles) / setup.ticks_per_ns;
    sum += ns;
    if (run.run == 0) first = ns;
    if (run.run >= 2) later.push_back(ns);
  }
  OneShadow one;
  one.pause = static_cast<double>(answer.pause_ns);
  one.fork = static_cast<double>(answer.fork_ns);
  one.run = Median(later);
  one.privatise = first - one.run;
  one.rest = one.pause - one.fork - sum;
  one.instance = static_cast<double>(held.end_ns - held.begin_ns - answer.pause_ns - usual.end_ns);
  one.instance_faults = static_cast<double>(held.faults - usual.faults);
  one.sweep = static_cast<double>(after.ns - before.ns);
  one.sweep_faults = static_cast<double>(after.faults - before.faults);
  return one;
}

absl::StatusOr<MemoryCost> MeasureSize(const BenchSetup& setup, uint64_t bytes, bool huge) {
  RankShape shape;
  shape.trip = std::max<int64_t>(100'000, setup.working_set_bytes / 24);
  shape.bytes = bytes;
  shape.huge = huge;
  ASSIGN_OR_RETURN(const std::unique_ptr<BenchRank> rank, BenchRank::Start(shape));
  MemoryCost cost;
  cost.bytes = bytes;
  cost.swept = std::min(bytes, kMostSwept);
  ASSIGN_OR_RETURN(cost.facts, ReadMemoryFacts(rank->info().pid));
  ASSIGN_OR_RETURN(std::unique_ptr<RankInjector> injector, rank->Install(InjectorOptionsOf(setup)));
  const ShadowPrediction prediction = injector->PredictShadow();
  cost.predicted_fork_ns = prediction.fork_ns;
  cost.predicted_later_ns = prediction.later_fault_ns;
  absl::Status status;
  const int repetitions = setup.quick ? 3 : 9;
  for (int i = 0; i < repetitions && status.ok(); ++i) {
    if (!cost.shadows.empty() && OutOfTime(setup, "some shadows of this size")) break;
    auto one = Observe(setup, *rank, *injector, cost.swept);
    status = one.status();
    if (one.ok()) cost.shadows.push_back(*one);
  }
  ASSIGN_OR_RETURN(cost.facts_after, ReadMemoryFacts(rank->info().pid));
  absl::Status out = injector->Uninstall();
  if (cost.shadows.empty()) return status.ok() ? absl::UnavailableError("no shadow") : status;
  if (!status.ok()) PrintRemark("a shadow was lost: " + status.ToString(), setup.json);
  RETURN_IF_ERROR(out);
  return cost;
}

void PrintCost(const MemoryCost& cost, const std::string& pages, const BenchTable& table) {
  auto ms = [&](double OneShadow::*p) { return cost.Middle(p) / 1e6; };
  const double faults = cost.Middle(&OneShadow::sweep_faults);
  table.Row({static_cast<int64_t>(cost.bytes >> 20), pages,
             static_cast<int64_t>(cost.shadows.size()), ms(&OneShadow::fork),
             cost.Most(&OneShadow::fork) / 1e6, static_cast<double>(cost.predicted_fork_ns) / 1e6,
             ms(&OneShadow::privatise), ms(&OneShadow::run), ms(&OneShadow::rest),
             ms(&OneShadow::pause), ms(&OneShadow::instance),
             cost.Middle(&OneShadow::instance_faults), ms(&OneShadow::sweep), faults,
             faults >= 1 ? cost.Middle(&OneShadow::sweep) / faults / 1e3 : 0.0,
             static_cast<double>(cost.predicted_later_ns) / 1e6,
             static_cast<int64_t>(cost.facts.huge >> 20) -
                 static_cast<int64_t>(cost.facts_after.huge >> 20)});
}

double PerMinute(double cost_ns) {
  return kBudget * 60e9 / std::max(1.0, cost_ns);
}

void PrintBought(const std::vector<std::pair<std::string, MemoryCost>>& costs,
                 const BenchSetup& setup) {
  BenchTable table(
      "two_percent",
      absl::StrFormat("What 2 %% of the wall time buys: shadows of %d runs per minute", kRuns),
      {"memory_mb", "pages", "loop_cost_ms", "per_minute_loop", "all_cost_ms", "per_minute_all"},
      setup.json);
  for (const auto& [pages, cost] : costs) {
    const double loop =
        cost.Middle(&OneShadow::pause) + std::max(0.0, cost.Middle(&OneShadow::instance));
    const double all = loop + std::max(0.0, cost.SweepNs());
    table.Row({static_cast<int64_t>(cost.bytes >> 20), pages, loop / 1e6, PerMinute(loop),
               all / 1e6, PerMinute(all)});
  }
  PrintRemark(
      "loop: pause, and later faults in the arrays of the loop; all: the rank writes to all of its "
      "memory before the next shadow",
      setup.json);
}

}  // namespace

absl::Status BenchMemory(const BenchSetup& setup) {
  std::vector<int64_t> sizes = setup.megabytes;
  if (sizes.empty() && setup.quick) sizes = {64, 256};
  if (sizes.empty()) sizes = {64, 256, 1024, 4096, 16384};
  BenchTable table(
      "memory",
      absl::StrFormat(
          "Shadows by memory size, ms, medians: a loop over %.1f MB, a third of it written",
          static_cast<double>(setup.working_set_bytes) / (1 << 20)),
      {"memory_mb", "pages", "shadows", "fork_ms", "fork_max", "fork_said", "private_ms", "run_ms",
       "rest_ms", "pause_ms", "next_ms", "next_faults", "sweep_ms", "sweep_faults", "us_per_fault",
       "later_said", "huge_lost_mb"},
      setup.json);
  std::vector<std::pair<std::string, MemoryCost>> costs;
  for (int64_t mb : sizes) {
    const uint64_t bytes = static_cast<uint64_t>(mb) << 20;
    if (bytes > MostBytes()) {
      PrintRemark(absl::StrFormat("%d MB: skipped, more than the memory that is available", mb),
                  setup.json);
      continue;
    }
    for (bool huge : {false, true}) {
      const std::string pages = huge ? "huge" : "4k";
      if (OutOfTime(setup, absl::StrFormat("%d MB in %s pages", mb, pages))) continue;
      auto cost = MeasureSize(setup, bytes, huge);
      if (!cost.ok()) {
        PrintRemark(absl::StrFormat("%d MB, %s: %s", mb, pages, cost.status().ToString()),
                    setup.json);
        continue;
      }
      if (huge && cost->facts.huge < bytes / 2) {
        PrintRemark(
            absl::StrFormat("%d MB, huge: skipped, the kernel gave only %d MB of huge pages", mb,
                            cost->facts.huge >> 20),
            setup.json);
        continue;
      }
      PrintCost(*cost, pages, table);
      costs.emplace_back(pages, *std::move(cost));
    }
  }
  PrintRemark(
      "said: predicted before the first shadow; private: first run less a later one; rest: set-up, "
      "end, "
      "reaping; next: the live loop's next instance beyond its usual time; sweep: writing to every "
      "page of "
      "up to 1 GB, beyond the same without a shadow; huge_lost: huge pages that the live rank no "
      "longer has",
      setup.json);
  PrintBought(costs, setup);
  return absl::OkStatus();
}

}  // namespace perfd::agent
