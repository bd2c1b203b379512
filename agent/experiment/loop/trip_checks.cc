#include "agent/experiment/loop/trip_checks.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace perfd::agent {
namespace {

// Loops that wait for other threads never make exactly as many passes again.
constexpr double kTolerance = 0.01;

bool Differ(uint64_t a, uint64_t b) {
  const auto [low, high] = std::minmax(a, b);
  return static_cast<double>(high - low) > kTolerance * static_cast<double>(high);
}

// Of the loop, and of the loops inside it.
struct Passes {
  uint64_t own = 0;
  uint64_t inner = 0;
};

// Of all threads: a team may share the same passes otherwise each time. None: not all of them have made the run.
std::optional<Passes> TeamPasses(const ShadowAnswer& answer, size_t run, int32_t team) {
  Passes passes;
  int32_t threads = 0;
  for (const ShadowRun& result : answer.runs) {
    if (!result.ok || static_cast<size_t>(result.run) != run) continue;
    passes.own += result.iterations;
    passes.inner += result.inner_passes;
    ++threads;
  }
  return threads == team ? std::optional(passes) : std::nullopt;
}

// Empty: it makes as many.
std::string WhyOtherPasses(const Passes& made, const Passes& expected) {
  const auto text = [](uint64_t is, uint64_t should, const char* whose) {
    return absl::StrCat("makes ", is, " passes", whose, " where the loop makes ", should,
                        ": its times mean nothing");
  };
  if (Differ(made.own, expected.own)) return text(made.own, expected.own, "");
  if (Differ(made.inner, expected.inner))
    return text(made.inner, expected.inner, " of the loops inside");
  return "";
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
  const std::optional<Passes> expected =
      TeamPasses(answer, static_cast<size_t>(std::distance(runs.begin(), counted)), team);
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!IsTripCheck(known, runs[i].variant)) continue;
    VariantName name = known.installed.names[static_cast<size_t>(runs[i].variant)];
    std::erase_if(name.parts,
                  [](const VariantPart& part) { return part.change == Change::kCount; });
    const std::optional<Passes> passes = TeamPasses(answer, i, team);
    if (!passes || !expected) continue;
    known.trips.checked.insert(name.Text());
    std::string why = WhyOtherPasses(*passes, *expected);
    if (why.empty()) continue;
    std::erase_if(known.runs.samples,
                  [&](const RunSample& run) { return run.variant == name.Text(); });
    known.trips.refusals.push_back({name.Text(), 0, std::move(why), 1});
  }
}

}  // namespace perfd::agent
