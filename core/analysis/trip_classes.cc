#include "core/analysis/trip_classes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace perfd {
namespace {

struct Instance {
  uint64_t trips = 0;
  uint32_t shadow = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the operator for one of pointers
  auto operator<=>(const Instance&) const = default;
};
using Part = std::vector<Instance>;  // sorted, not empty

std::vector<Instance> CountedInstances(std::span<const RunSample> runs) {
  std::map<uint32_t, uint64_t> trips;  // by shadow
  for (const RunSample& run : runs) {
    if (run.variant != "COUNT" || run.status != RunOutcome::kOk || run.iterations == 0) continue;
    uint64_t& most = trips[run.shadow];
    most = std::max(most, run.iterations);
  }
  std::vector<Instance> instances;
  instances.reserve(trips.size());
  for (const auto& [shadow, count] : trips) instances.push_back({count, shadow});
  std::sort(instances.begin(), instances.end());
  return instances;
}

// Each run of equal counts goes where its middle lies.
std::vector<Part> Quantiles(const std::vector<Instance>& sorted, size_t classes) {
  std::vector<Part> parts(classes);
  for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    while (end < sorted.size() && sorted[end].trips == sorted[begin].trips) ++end;
    Part& part = parts[(begin + end) * classes / (2 * sorted.size())];
    part.insert(part.end(), sorted.begin() + static_cast<std::ptrdiff_t>(begin),
                sorted.begin() + static_cast<std::ptrdiff_t>(end));
  }
  parts.erase(
      std::remove_if(parts.begin(), parts.end(), [](const Part& part) { return part.empty(); }),
      parts.end());
  return parts;
}

// The smallest too small one joins its smaller neighbour, until there is none.
void JoinSmall(std::vector<Part>& parts) {
  const auto fewer = [](const Part& a, const Part& b) { return a.size() < b.size(); };
  while (parts.size() > 1) {
    const auto least = std::min_element(parts.begin(), parts.end(), fewer);
    if (least->size() >= kLeastInClass) return;
    const auto before = least == parts.begin() ? parts.end() : least - 1;
    const auto after = least + 1;
    const bool joins_after =
        before == parts.end() || (after != parts.end() && after->size() < before->size());
    const auto first = joins_after ? least : before;
    first->insert(first->end(), (first + 1)->begin(), (first + 1)->end());
    parts.erase(first + 1);
  }
}

uint64_t MiddleTrips(const Part& part) {
  return part[part.size() / 2].trips;
}

std::vector<Part> PartInstances(const std::vector<Instance>& sorted) {
  const size_t classes = std::min(kMostTripClasses, sorted.size() / kLeastInClass);
  if (classes < 2) return {};
  std::vector<Part> parts = Quantiles(sorted, classes);
  JoinSmall(parts);
  const bool alike = MiddleTrips(parts.back()) / kTripSpread < MiddleTrips(parts.front());
  return alike ? std::vector<Part>{} : parts;
}

TripClass ClassOf(const Part& part, std::span<const RunSample> runs, const ReduceOptions& options) {
  std::set<uint32_t> shadows;
  for (const Instance& instance : part) shadows.insert(instance.shadow);
  std::vector<RunSample> own;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(own),
               [&](const RunSample& run) { return shadows.contains(run.shadow); });
  return {part.front().trips, part.back().trips, static_cast<uint32_t>(part.size()),
          ReduceRuns(own, options).figures};
}

// Neighbours of one verdict, together.
struct Stretch {
  Bound bound = Bound::kUnknown;
  uint64_t shortest = 0;
  uint64_t longest = 0;
};

std::string StretchText(const Stretch& stretch) {
  if (stretch.shortest == stretch.longest)
    return absl::StrCat(BoundName(stretch.bound), " at ", stretch.shortest, " trips");
  return absl::StrCat(BoundName(stretch.bound), " from ", stretch.shortest, " to ", stretch.longest,
                      " trips");
}

// Of one instance: of REF, or of another base where nothing is compared with REF.
double CyclesOf(const TripClass& trips) {
  for (const VariantFigures& figures : trips.figures) {
    if (figures.variant == figures.base && figures.thread == kTeam && figures.valid_runs > 0)
      return figures.cycles;
  }
  return 0;
}

}  // namespace

std::vector<TripClass> TripClassesOf(std::span<const RunSample> runs,
                                     const ReduceOptions& options) {
  ReduceOptions of_team = options;
  of_team.with_threads = false;
  std::vector<TripClass> classes;
  for (const Part& part : PartInstances(CountedInstances(runs)))
    classes.push_back(ClassOf(part, runs, of_team));
  return classes;
}

bool TripsVary(std::span<const uint64_t> trips) {
  if (trips.empty()) return false;
  const auto [least, most] = std::minmax_element(trips.begin(), trips.end());
  return *most / kTripSpread >= std::max<uint64_t>(*least, 1);
}

std::vector<ClassVerdict> ClassVerdictsOf(const LoopMeasurement& of, const VerdictEdges& edges) {
  std::vector<ClassVerdict> verdicts;
  LoopMeasurement one;  // what the whole loop touches says nothing of an instance
  one.fidelity = of.fidelity;
  if (SharesLines(of)) one.fidelity.reason = FidelityReason::kSharedLines;
  for (const TripClass& trips : of.trip_classes) {
    one.figures = trips.figures;
    verdicts.push_back(VerdictOf(one, kTeam, edges));
  }
  return verdicts;
}

std::string TripRemark(const LoopMeasurement& of, const VerdictEdges& edges) {
  std::vector<Stretch> stretches;
  std::set<Bound> bounds;
  const std::vector<ClassVerdict> verdicts = ClassVerdictsOf(of, edges);
  for (size_t i = 0; i < verdicts.size(); ++i) {
    const TripClass& trips = of.trip_classes[i];
    const ClassVerdict& verdict = verdicts[i];
    if (!verdict.sure || !IsDefinite(verdict.bound)) continue;
    bounds.insert(verdict.bound);
    if (stretches.empty() || stretches.back().bound != verdict.bound)
      stretches.push_back({verdict.bound, trips.shortest, trips.longest});
    stretches.back().longest = trips.longest;
  }
  if (bounds.size() < 2) return "";
  return absl::StrCat("the verdict depends on the trip count: ",
                      absl::StrJoin(stretches, ", ", [](std::string* out, const Stretch& stretch) {
                        absl::StrAppend(out, StretchText(stretch));
                      }));
}

bool ClassesContradict(const LoopMeasurement& of, Bound bound, const VerdictEdges& edges) {
  if (!IsDefinite(bound)) return false;
  const std::vector<ClassVerdict> verdicts = ClassVerdictsOf(of, edges);
  const std::vector<double> times = TimeOfClasses(of.trip_classes);
  double others = 0;
  for (size_t i = 0; i < verdicts.size(); ++i) {
    const bool other = IsDefinite(verdicts[i].bound) && verdicts[i].bound != bound;
    if (other && verdicts[i].sure) others += times[i];
  }
  return others > 0.5;
}

std::vector<double> TimeOfClasses(const std::vector<TripClass>& classes) {
  std::vector<double> parts;
  double sum = 0;
  for (const TripClass& trips : classes) {
    parts.push_back(trips.instances * CyclesOf(trips));
    sum += parts.back();
  }
  for (double& part : parts) part = sum > 0 ? part / sum : 0;
  return parts;
}

}  // namespace perfd
