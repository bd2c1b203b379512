// LoopExperiment: does a variant make as many passes as the loop? What it tells of one pass is worth nothing otherwise.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "agent/experiment/loop_experiment.h"

namespace perfd::agent {
namespace {

// Loops that wait for other threads never make exactly as many passes again.
constexpr double kTolerance = 0.01;

bool Differ(uint64_t a, uint64_t b) {
  const auto [low, high] = std::minmax(a, b);
  return static_cast<double>(high - low) > kTolerance * static_cast<double>(high);
}

// Of all threads: a team may share the same passes otherwise each time. None: not all of them have made the run.
std::optional<uint64_t> TeamPasses(const ShadowAnswer& answer, size_t run, int32_t team) {
  uint64_t passes = 0;
  int32_t threads = 0;
  for (const ShadowRun& result : answer.runs) {
    if (!result.ok || static_cast<size_t>(result.run) != run) continue;
    passes += result.iterations;
    ++threads;
  }
  return threads == team ? std::optional<uint64_t>(passes) : std::nullopt;
}

}  // namespace

// One counted run of each variant that none has been counted of.
std::vector<int32_t> LoopExperiment::TripChecks(const std::vector<int32_t>& variants) const {
  std::vector<int32_t> checks;
  for (const int32_t variant : variants) {
    const VariantName& name = installed_.names[static_cast<size_t>(variant)];
    if (trips_checked_.contains(name.Text())) continue;
    const int32_t counted = IndexOf(Counted(name).Text());
    if (counted > kTraceIndex && (instances_ == 0 || Batched(counted))) checks.push_back(counted);
  }
  return checks;
}

// Nobody asked for it: it tells passes, not times.
bool LoopExperiment::IsTripCheck(int32_t variant) const {
  const VariantName& name = installed_.names[static_cast<size_t>(variant)];
  return variant > kTraceIndex && name.Has(Change::kCount) &&
         std::find(setup_.asked.begin(), setup_.asked.end(), name.Text()) == setup_.asked.end();
}

// The counted run of the loop itself is in the same shadow and began from the same state.
void LoopExperiment::CheckTrips(const ShadowAnswer& answer, const std::vector<RunSpec>& runs) {
  const auto counted = std::find_if(runs.begin(), runs.end(),
                                    [](const RunSpec& run) { return run.variant == kCountIndex; });
  const std::optional<uint64_t> expected = TeamPasses(
      answer, static_cast<size_t>(std::distance(runs.begin(), counted)), entry_count_.team);
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!IsTripCheck(runs[i].variant)) continue;
    VariantName name = installed_.names[static_cast<size_t>(runs[i].variant)];
    std::erase_if(name.parts,
                  [](const VariantPart& part) { return part.change == Change::kCount; });
    const std::optional<uint64_t> passes = TeamPasses(answer, i, entry_count_.team);
    if (!passes || !expected) continue;
    trips_checked_.insert(name.Text());
    if (!Differ(*passes, *expected)) continue;
    std::erase_if(runs_, [&](const RunSample& run) { return run.variant == name.Text(); });
    trip_refusals_.push_back({name.Text(), 0,
                              absl::StrCat("makes ", *passes, " passes where the loop makes ",
                                           *expected, ": its times mean nothing"),
                              1});
  }
}

}  // namespace perfd::agent
