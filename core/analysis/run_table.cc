#include "core/analysis/run_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace perfd {
namespace {

const char* StatusReason(RunOutcome status) {
  switch (status) {
    case RunOutcome::kOk:
      return "";
    case RunOutcome::kFault:
      return "the variant faulted in the shadow";
    case RunOutcome::kTimeout:
      return "the variant did not end in time";
    case RunOutcome::kNotRun:
      return "the shadow ended before this run";
    case RunOutcome::kCutShort:
      return "the loop around it ended in its midst";
  }
  return "unknown status";
}

CheckedRun Check(const RunSample& from, double probe_cycles) {
  CheckedRun run{from.shadow,
                 from.order,
                 from.variant,
                 from.cycles - probe_cycles,
                 from.iterations,
                 StatusReason(from.status),
                 from.status == RunOutcome::kNotRun ? RefusalKind::kNotRun : RefusalKind::kOther};
  if (run.valid() && !(std::isfinite(run.cycles) && run.cycles > 0))
    run.reason = "not longer than the probe itself";
  return run;
}

// `from` is another thread's part of the same run.
void Join(const CheckedRun& from, CheckedRun& run) {
  run.cycles = std::max(run.cycles, from.cycles);
  run.iterations += from.iterations;
  if (!run.valid()) return;
  run.reason = from.reason;
  run.kind = from.kind;
}

bool IsRef(absl::string_view variant) {
  return variant == "REF" || variant == "REF_FTZ" || variant == "REF_CTL";
}

// The trip count of each shadow's instance: COUNT's, else that of a REF that was counted.
std::map<uint32_t, uint64_t> TripsOfShadows(std::span<const CheckedRun> runs) {
  std::map<uint32_t, uint64_t> trips;
  for (const CheckedRun& run : runs) {
    if (run.valid() && run.iterations != 0 && IsRef(run.variant))
      trips.emplace(run.shadow, run.iterations);
  }
  for (const CheckedRun& run : runs) {
    if (run.valid() && run.iterations != 0 && run.variant == "COUNT")
      trips[run.shadow] = run.iterations;
  }
  return trips;
}

void CheckTrips(std::vector<CheckedRun>& runs) {
  const std::map<uint32_t, uint64_t> trips = TripsOfShadows(runs);
  for (CheckedRun& run : runs) {
    const auto expected = trips.find(run.shadow);
    if (expected == trips.end() || !run.valid() || run.iterations == 0) continue;
    if (run.iterations != expected->second) run.reason = "its trip count is not the loop's";
  }
  // Most copies do not count: their runs began where the counted one did.
  for (CheckedRun& run : runs) {
    const auto counted = trips.find(run.shadow);
    if (counted != trips.end() && run.valid() && run.iterations == 0)
      run.iterations = counted->second;
  }
}

// The nearest run of `base` before and after runs[at] in the same shadow.
std::vector<double> Neighbours(std::span<const CheckedRun> runs, size_t at,
                               absl::string_view base) {
  std::vector<double> cycles;
  const auto counts = [&](size_t i) { return runs[i].valid() && runs[i].variant == base; };
  for (size_t i = at; i-- > 0 && runs[i].shadow == runs[at].shadow;) {
    if (!counts(i)) continue;
    cycles.push_back(runs[i].cycles);
    break;
  }
  for (size_t i = at + 1; i < runs.size() && runs[i].shadow == runs[at].shadow; ++i) {
    if (!counts(i)) continue;
    cycles.push_back(runs[i].cycles);
    break;
  }
  return cycles;
}

// Why a run has no ratio, by the runs of its base around it. An empty reason: it has one.
Refusal BaseRefusal(const std::vector<double>& around, absl::string_view base, double spread,
                    bool two_sided) {
  Refusal refusal;
  if (around.empty()) {
    refusal.reason = absl::StrCat("no valid run of ", base, " beside it");
    return refusal;
  }
  const auto [low, high] = std::minmax_element(around.begin(), around.end());
  const bool one_sided = around.size() == 1 && two_sided;
  if (!one_sided && *high - *low <= spread * *low) return refusal;
  refusal.kind = RefusalKind::kMachineChanged;
  refusal.reason = one_sided
                       ? absl::StrCat("a valid run of ", base, " on one side of it only")
                       : absl::StrCat(base, " changed by more than ", std::lround(spread * 100),
                                      " % from before to after it");
  return refusal;
}

}  // namespace

std::vector<CheckedRun> CheckRuns(std::span<const RunSample> runs, int32_t thread,
                                  const ReduceOptions& options) {
  std::map<std::pair<uint32_t, uint32_t>, CheckedRun> table;  // by shadow, order
  for (const RunSample& from : runs) {
    if (thread != kTeam && from.thread != thread) continue;
    CheckedRun run = Check(from, options.probe_cycles);
    const auto [at, fresh] = table.try_emplace({from.shadow, from.order}, run);
    if (!fresh) Join(run, at->second);
  }
  std::vector<CheckedRun> checked;
  checked.reserve(table.size());
  for (auto& [key, run] : table) checked.push_back(std::move(run));
  CheckTrips(checked);
  return checked;
}

PairedRuns PairRuns(std::span<const CheckedRun> runs, absl::string_view variant,
                    absl::string_view base, double base_spread) {
  PairedRuns out;
  // A schedule has them so; where one is missing nobody knows whether the machine changed. Bases are the ends of schedules,
  // and two variants may stand in one round only.
  const bool two_sided = IsRef(base) && !IsRef(variant);
  for (size_t i = 0; i < runs.size(); ++i) {
    const CheckedRun& run = runs[i];
    if (run.variant != variant) continue;
    std::vector<double> around;
    Refusal refusal;
    refusal.reason = run.reason;
    refusal.kind = run.kind;
    if (run.valid()) {
      around = Neighbours(runs, i, base);
      refusal = BaseRefusal(around, base, base_spread, two_sided);
    }
    if (!refusal.reason.empty()) {
      refusal.variant = run.variant;
      out.refusals.push_back(std::move(refusal));
      continue;
    }
    const double mean = around.size() == 2 ? (around[0] + around[1]) / 2 : around[0];
    out.ratios.push_back({run.shadow, run.cycles / mean});
    out.runs.push_back(&run);
  }
  return out;
}

}  // namespace perfd
