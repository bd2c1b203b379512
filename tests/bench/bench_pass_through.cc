// The cost of an idle entry, and whether loops that are entered too often lose their jump (agent/experiment/rank_experiments.cc).
#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "agent/experiment/rank_experiments.h"
#include "core/analysis/cluster_median.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "tests/bench/bench_rank.h"
#include "tests/bench/bench_table.h"
#include "tests/bench/injection_bench.h"

namespace perfd::agent {
namespace {

constexpr double kMostShare = 0.002;  // the aim: of wall time, by the retreat rule
constexpr double kAimNs = 3;
constexpr int64_t kSettleNs = 2 * kNsPerMs;
constexpr int64_t kWindowNs = 25 * kNsPerMs;
constexpr int64_t kEntryCountNs = 50 * kNsPerMs;
constexpr int kEntryCountAttempts = 8;

struct EntryCost {
  int64_t trip = 0;
  double without_ns = 0;
  double with_ns = 0;
  Ratio added;  // ns
  double counted_per_second = 0;
};

void Sleep(int64_t ns) {
  absl::SleepFor(absl::Nanoseconds(ns));
}

// Of one window, by the rank's own clock readings.
absl::StatusOr<double> EntryNs(const BenchRank& rank) {
  Sleep(kSettleNs);
  ASSIGN_OR_RETURN(const bench_reading begin, rank.Read());
  Sleep(kWindowNs);
  ASSIGN_OR_RETURN(const bench_reading end, rank.Read());
  if (end.entries == begin.entries)
    return absl::UnavailableError("the rank did not run during a window");
  return static_cast<double>(end.ns - begin.ns) / static_cast<double>(end.entries - begin.entries);
}

// Windows with and without the jump in turn (AB BA AB ...): each pair is one observation.
absl::StatusOr<EntryCost> Compare(const BenchSetup& setup, const BenchRank& rank,
                                  RankInjector& injector) {
  EntryCost cost;
  std::vector<double> without, with;
  std::vector<ClusterValue> added;
  const uint32_t pairs = setup.quick ? 8 : 40;
  for (uint32_t pair = 0; pair < pairs; ++pair) {
    double ns[2] = {};
    bool ran = true;  // on a crowded machine the rank may sleep through a whole window
    for (int half = 0; half < 2; ++half) {
      const bool patched = (pair % 2 == 0) == (half == 1);
      RETURN_IF_ERROR(injector.SetPatched(0, patched));
      const absl::StatusOr<double> entry_ns = EntryNs(rank);
      if (!absl::IsUnavailable(entry_ns.status())) RETURN_IF_ERROR(entry_ns.status());
      ran &= entry_ns.ok();
      ns[patched ? 1 : 0] = entry_ns.value_or(0);
    }
    if (!ran) continue;
    without.push_back(ns[0]);
    with.push_back(ns[1]);
    added.push_back({pair, ns[1] - ns[0]});
  }
  if (added.size() < 2) return absl::UnavailableError("the rank hardly ran");
  cost.without_ns = Median(without);
  cost.with_ns = Median(with);
  cost.added = ClusterMedian(added);
  RETURN_IF_ERROR(injector.SetPatched(0, true));
  ASSIGN_OR_RETURN(const EntryCount entry_count, injector.CountEntries(0, kEntryCountNs));
  cost.counted_per_second = entry_count.entries_per_second;
  return cost;
}

absl::StatusOr<EntryCost> MeasureEntries(const BenchSetup& setup, const BenchRank& rank) {
  ASSIGN_OR_RETURN(std::unique_ptr<RankInjector> injector, rank.Install(InjectorOptionsOf(setup)));
  auto cost = Compare(setup, rank, *injector);
  RETURN_IF_ERROR(injector->Uninstall());
  return cost;
}

struct Retreat {
  bool retreated = false;
  int64_t patched_ns = 0;  // until then, or until it was looked at
  double rule_share = 0;   // of wall time, as the agent accounts for it
};

// As the agent does it: install, watch, and settle.
absl::StatusOr<Retreat> WatchRetreat(const BenchSetup& setup, const BenchRank& rank) {
  ASSIGN_OR_RETURN(std::unique_ptr<RankInjector> injector,
                   RankInjector::Open(rank.info(), InjectorOptionsOf(setup)));
  RankExperiments bench(rank.Places(), std::move(injector));
  ExperimentRequest request;
  request.plan.variants = {"LS"};
  request.ranks = {rank.Places()};
  bench.Install(rank.Places(), request, setup.ticks_per_ns);
  const int64_t begin = SystemClock().MonotonicNs();
  for (int i = 0; i < kEntryCountAttempts; ++i) {
    if (bench.stage(0) != Stage::kEntryCount) break;
    const StepRoom room = bench.Prepare(0, kNsPerSecond);
    bench.Step(0, room);
    bench.Settle(0);
  }
  Retreat retreat;
  retreat.patched_ns = SystemClock().MonotonicNs() - begin;
  const LoopMeasurement measurement = bench.Measurement(0, 1, SystemClock().MonotonicNs());
  const absl::StatusOr<bool> altered = rank.Altered();
  RETURN_IF_ERROR(bench.Restore());
  RETURN_IF_ERROR(altered.status());
  if (measurement.state == MeasureState::kRefused ||
      measurement.state == MeasureState::kNeverEntered)
    return absl::FailedPreconditionError(measurement.reason);
  retreat.retreated = !*altered;
  retreat.rule_share = static_cast<double>(measurement.cost.pass_through_ns) /
                       static_cast<double>(retreat.patched_ns);
  ASSIGN_OR_RETURN(const bool left, rank.Altered());
  if (left) return absl::InternalError("the text is not what it was");
  return retreat;
}

void PrintRetreat(const BenchSetup& setup, const EntryCost& cost, double entry_ns,
                  const absl::StatusOr<Retreat>& retreat, const BenchTable& table) {
  const double rate = 1e9 / cost.without_ns;
  const double share = entry_ns / cost.without_ns;
  if (!retreat.ok()) {
    PrintRemark(absl::StrFormat("trip %d: %s", cost.trip, retreat.status().ToString()), setup.json);
    return;
  }
  const bool wanted = share > kMostShare;
  table.Row({cost.trip, rate, cost.counted_per_second, 100 * share, 100 * retreat->rule_share,
             std::string(retreat->retreated ? "taken out" : "stays"),
             static_cast<double>(retreat->patched_ns) / 1e6,
             std::string(wanted == retreat->retreated ? "yes" : "NO")});
}

}  // namespace

absl::Status BenchPassThrough(const BenchSetup& setup) {
  BenchTable table(
      "pass_through",
      "Pass-through: one entry of a loop without and with the jump, ns (aim: under 3 added)",
      {"trip", "without_ns", "with_ns", "added_ns", "low95_ns", "high95_ns", "added_percent",
       "under_aim"},
      setup.json);
  std::vector<EntryCost> costs;
  std::vector<absl::StatusOr<Retreat>> retreats;
  std::vector<double> short_ns;  // added to loops so short that it can be told
  for (int64_t trip : {1, 4, 16, 64, 250, 700, 1200, 2000, 20000}) {
    if (OutOfTime(setup, absl::StrFormat("pass-through of a loop of %d iterations", trip))) break;
    RankShape shape;
    shape.trip = trip;
    ASSIGN_OR_RETURN(const std::unique_ptr<BenchRank> rank, BenchRank::Start(shape));
    auto measured = MeasureEntries(setup, *rank);
    if (!measured.ok()) {
      PrintRemark(absl::StrFormat("trip %d: %s", trip, measured.status().ToString()), setup.json);
      continue;
    }
    EntryCost cost = *measured;
    cost.trip = trip;
    if (trip <= 16) short_ns.push_back(cost.added.value);
    // The interval of a long loop is wider than the aim: it can say neither yes nor no.
    const bool under = cost.added.high < kAimNs, over = cost.added.low >= kAimNs;
    table.Row({trip, cost.without_ns, cost.with_ns, cost.added.value, cost.added.low,
               cost.added.high, 100 * cost.added.value / cost.without_ns,
               std::string(under  ? "yes"
                           : over ? "NO"
                                  : "unsure")});
    costs.push_back(cost);
    retreats.push_back(WatchRetreat(setup, *rank));
  }
  const double entry_ns = Median(short_ns);
  BenchTable rule(
      "retreat",
      absl::StrFormat("Retreat: a loop whose idle entries (%.2f ns each) take over 0.2 %% "
                      "of the wall time loses its jump",
                      entry_ns),
      {"trip", "entries_per_s", "census_per_s", "share_percent", "rule_percent", "jump",
       "patched_ms", "as_it_should"},
      setup.json);
  for (size_t i = 0; i < costs.size(); ++i)
    PrintRetreat(setup, costs[i], entry_ns, retreats[i], rule);
  PrintRemark(
      "share: entries x measured cost; rule: what the agent takes it for, by a census of its own",
      setup.json);
  return absl::OkStatus();
}

}  // namespace perfd::agent
