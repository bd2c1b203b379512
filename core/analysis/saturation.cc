#include "core/analysis/saturation.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "core/analysis/cluster_median.h"
#include "core/analysis/run_table.h"
#include "core/model/variant_name.h"

namespace perfd {
namespace {

constexpr char kRef[] = "REF";

bool IsBase(const std::string& variant) {
  return variant == kRef || variant == "REF_FTZ" || variant == "REF_CTL";
}

std::string BaseOf(const std::string& variant, const ReduceOptions& options) {
  if (IsBase(variant)) return variant;
  const auto found = options.base_of.find(variant);
  return found == options.base_of.end() ? kRef : found->second;
}

// The catalogue's order; names that are none come last.
std::vector<std::string> VariantsInOrder(std::span<const RunSample> runs) {
  std::set<std::string> names;
  for (const RunSample& run : runs) {
    if (run.variant != "COUNT") names.insert(run.variant);
  }
  std::vector<std::string> ordered(names.begin(), names.end());
  const auto rank = [](const std::string& name) {
    const auto parsed = ParseVariantName(name);
    if (!parsed.ok()) return std::tuple(kChangeCount, 0, name);
    const VariantPart& first = parsed->parts.front();
    return std::tuple(static_cast<int>(first.change), first.parameter, name);
  };
  std::sort(ordered.begin(), ordered.end(),
            [&](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
  return ordered;
}

// Cycles per iteration where trip counts are known, so that instances of different length compare.
double StabilityOf(const std::vector<const CheckedRun*>& runs) {
  const bool counted = std::any_of(runs.begin(), runs.end(),
                                   [](const CheckedRun* run) { return run->iterations != 0; });
  std::vector<double> times;
  for (const CheckedRun* run : runs) {
    if (counted && run->iterations == 0) continue;
    times.push_back(counted ? run->cycles / static_cast<double>(run->iterations) : run->cycles);
  }
  if (times.empty()) return 0;
  const double least = *std::min_element(times.begin(), times.end());
  return (Median(times) - least) / least;
}

void FillTimes(const std::vector<const CheckedRun*>& runs, VariantFigures& figures) {
  std::vector<double> cycles;
  std::vector<double> iterations;
  std::set<uint32_t> shadows;
  for (const CheckedRun* run : runs) {
    cycles.push_back(run->cycles);
    if (run->iterations != 0) iterations.push_back(static_cast<double>(run->iterations));
    shadows.insert(run->shadow);
  }
  figures.cycles = Median(cycles);
  figures.cycles_min = cycles.empty() ? 0 : *std::min_element(cycles.begin(), cycles.end());
  figures.iterations = Median(iterations);
  figures.stability = StabilityOf(runs);
  figures.valid_runs = static_cast<uint32_t>(runs.size());
  figures.shadows = static_cast<uint32_t>(shadows.size());
}

// What only removes cannot take far longer: then something else changed as well. It may take a little longer, as the rest
// meets in other orders (docs/adr/0008-verdict-edges.md).
void RefuseSlowRemoval(VariantFigures& figures, std::vector<Refusal>& refusals) {
  if (!OnlyRemoves(figures.variant) || figures.saturation.low <= 1 + kMostNoise) return;
  refusals.push_back({figures.variant, 0,
                      "slower than its base although it only removes instructions: the change has "
                      "a side effect",
                      figures.valid_runs});
  figures.invalid_runs += figures.valid_runs;
  figures.valid_runs = 0;
  figures.saturation = {};
}

// A base needs nothing beside it: every run that is valid in itself counts. Its ratio to its own neighbours is an A/A
// comparison: the noise of this measurement.
PairedRuns BaseRuns(std::span<const CheckedRun> runs, const std::string& base, double spread) {
  PairedRuns pairs = PairRuns(runs, base, base, spread);
  pairs.runs.clear();
  pairs.refusals.clear();
  for (const CheckedRun& run : runs) {
    if (run.variant != base) continue;
    if (run.valid()) {
      pairs.runs.push_back(&run);
    } else {
      pairs.refusals.push_back({base, 0, run.reason, 1, run.kind});
    }
  }
  return pairs;
}

VariantFigures FiguresOf(std::span<const CheckedRun> runs, const std::string& variant,
                         int32_t thread, const ReduceOptions& options,
                         std::vector<Refusal>& refusals) {
  VariantFigures figures;
  figures.variant = variant;
  figures.base = BaseOf(variant, options);
  figures.thread = thread;
  const PairedRuns pairs = IsBase(variant)
                               ? BaseRuns(runs, variant, options.base_spread)
                               : PairRuns(runs, variant, figures.base, options.base_spread);
  FillTimes(pairs.runs, figures);
  figures.invalid_runs = static_cast<uint32_t>(pairs.refusals.size());
  figures.saturation = ClusterMedian(pairs.ratios, options.seed);
  refusals.insert(refusals.end(), pairs.refusals.begin(), pairs.refusals.end());
  RefuseSlowRemoval(figures, refusals);
  return figures;
}

// Equal variant and reason: one line, with the sum of the counts.
std::vector<Refusal> Merged(const std::vector<Refusal>& refusals) {
  std::vector<Refusal> merged;
  for (const Refusal& refusal : refusals) {
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const Refusal& other) {
      return other.variant == refusal.variant && other.reason == refusal.reason;
    });
    if (same == merged.end()) {
      merged.push_back(refusal);
    } else {
      same->count += refusal.count;
    }
  }
  return merged;
}

double DriftOf(std::span<const CheckedRun> runs) {
  std::map<uint32_t, std::pair<double, double>> ends;  // by shadow: first and last REF
  std::map<uint32_t, int> counts;
  for (const CheckedRun& run : runs) {
    if (!run.valid() || run.variant != kRef) continue;
    ends.try_emplace(run.shadow, run.cycles, run.cycles).first->second.second = run.cycles;
    ++counts[run.shadow];
  }
  std::vector<double> ratios;
  for (const auto& [shadow, cycles] : ends) {
    if (counts[shadow] > 1) ratios.push_back(cycles.second / cycles.first);
  }
  return ratios.empty() ? 1 : Median(ratios);
}

}  // namespace

Reduction ReduceRuns(std::span<const RunSample> runs, const ReduceOptions& options) {
  std::set<int32_t> threads;
  for (const RunSample& run : runs) threads.insert(run.thread);
  std::map<int32_t, std::vector<CheckedRun>> tables;  // kTeam first
  tables[kTeam] = CheckRuns(runs, kTeam, options);
  if (threads.size() > 1 && options.with_threads) {
    for (int32_t thread : threads) tables[thread] = CheckRuns(runs, thread, options);
  }
  Reduction out;
  std::vector<Refusal> of_threads;  // the team's repeat them
  std::vector<Refusal> of_team;
  for (const std::string& variant : VariantsInOrder(runs)) {
    for (const auto& [thread, table] : tables)
      out.figures.push_back(
          FiguresOf(table, variant, thread, options, thread == kTeam ? of_team : of_threads));
  }
  out.refusals = Merged(of_team);
  out.base_drift = DriftOf(tables[kTeam]);
  return out;
}

Ratio RatioBetween(std::span<const RunSample> runs, absl::string_view variant,
                   absl::string_view base, int32_t thread, const ReduceOptions& options) {
  const std::vector<CheckedRun> table = CheckRuns(runs, thread, options);
  return ClusterMedian(PairRuns(table, variant, base, options.base_spread).ratios, options.seed);
}

bool IntervalIsTight(const VariantFigures& figures, double half_width) {
  if (figures.valid_runs == 0 || figures.shadows < kLeastShadows) return false;
  const Ratio& s = figures.saturation;
  return std::max(s.high - s.value, s.value - s.low) <= half_width;
}

bool IsEnough(const VariantFigures& figures, uint32_t repetitions, double half_width) {
  return figures.valid_runs >= repetitions || IntervalIsTight(figures, half_width);
}

TripCounts TripDeciles(std::span<const uint64_t> counts) {
  TripCounts trips;
  trips.instances = counts.size();
  if (counts.empty()) return trips;
  std::vector<double> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end());
  const double steps = static_cast<double>(trips.decile.size() - 1);
  for (size_t i = 0; i < trips.decile.size(); ++i)
    trips.decile[i] = SortedQuantile(sorted, static_cast<double>(i) / steps);
  return trips;
}

double NoiseOf(double stability, double noise) {
  return std::max(2 * stability, noise);
}

bool OnlyRemoves(absl::string_view variant) {
  const auto name = ParseVariantName(variant);
  if (!name.ok()) return false;
  return std::all_of(name->parts.begin(), name->parts.end(), [](const VariantPart& part) {
    switch (part.change) {
      case Change::kLs:
      case Change::kFp:
      case Change::kNoDiv:
      case Change::kNoSqrt:
      case Change::kNoRed:
      case Change::kNoCall:
      case Change::kNoStore:
      case Change::kGroup:
      case Change::kCtrl:
        return true;
      default:
        return false;
    }
  });
}

}  // namespace perfd
