#include "agent/experiment/loop/trip_checks.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"

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

std::vector<int32_t> TripChecks(const LoopKnowledge& known, const std::vector<int32_t>& variants) {
  std::vector<int32_t> checks;
  for (const int32_t variant : variants) {
    const VariantName& name = known.installed.names[static_cast<size_t>(variant)];
    if (known.trips.checked.contains(name.Text())) continue;
    const int32_t counted = IndexOf(known, Counted(name).Text());
    const bool can_run = known.batch.instances == 0 || IsBatched(known, counted);
    if (counted > kTraceIndex && can_run) checks.push_back(counted);
  }
  return checks;
}

void CheckTrips(LoopKnowledge& known, const ShadowAnswer& answer,
                const std::vector<RunSpec>& runs) {
  const int32_t team = ShadowTeam(known);
  const auto counted = std::find_if(runs.begin(), runs.end(),
                                    [](const RunSpec& run) { return run.variant == kCountIndex; });
  const std::optional<uint64_t> expected =
      TeamPasses(answer, static_cast<size_t>(std::distance(runs.begin(), counted)), team);
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!IsTripCheck(known, runs[i].variant)) continue;
    VariantName name = known.installed.names[static_cast<size_t>(runs[i].variant)];
    std::erase_if(name.parts,
                  [](const VariantPart& part) { return part.change == Change::kCount; });
    const std::optional<uint64_t> passes = TeamPasses(answer, i, team);
    if (!passes || !expected) continue;
    known.trips.checked.insert(name.Text());
    if (!Differ(*passes, *expected)) continue;
    std::erase_if(known.runs.samples,
                  [&](const RunSample& run) { return run.variant == name.Text(); });
    known.trips.refusals.push_back({name.Text(), 0,
                                    absl::StrCat("makes ", *passes, " passes where the loop makes ",
                                                 *expected, ": its times mean nothing"),
                                    1});
  }
}

}  // namespace perfd::agent
