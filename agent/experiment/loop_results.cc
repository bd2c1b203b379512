// What a LoopExperiment makes of the runs it has: figures, protocol, the measurement that is sent.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/experiment/listing.h"
#include "agent/experiment/loop_experiment.h"
#include "agent/experiment/preparation.h"
#include "core/analysis/trip_classes.h"

namespace perfd::agent {
namespace {

constexpr uint32_t kMostInstances = 31;  // where trip counts vary: enough for seven classes

// One thread's time of a base, comparable with that of one thread in the rank; the team's when there is only one.
double ThreadCycles(const std::vector<VariantFigures>& figures, absl::string_view base) {
  std::vector<double> threads;
  double team = 0;
  for (const VariantFigures& figure : figures) {
    if (figure.variant != base || figure.cycles <= 0) continue;
    if (figure.thread == kTeam)
      team = figure.cycles;
    else
      threads.push_back(figure.cycles);
  }
  if (threads.empty()) return team;
  std::sort(threads.begin(), threads.end());
  return threads[threads.size() / 2];
}

const char* ProtocolName(Evict evict) {
  switch (evict) {
    case Evict::kNothing:
      return "warm";
    case Evict::kFirst:
      return "L1 evicted";
    case Evict::kSecond:
      return "L2 evicted";
    case Evict::kAll:
      return "cold";
  }
  return "";
}

// By what an injector says of the run (ShadowRun::failure).
RunOutcome OutcomeOf(const ShadowRun& run) {
  if (run.ok) return RunOutcome::kOk;
  if (absl::StartsWith(run.failure, "not run")) return RunOutcome::kNotRun;
  return absl::StartsWith(run.failure, "did not end") ? RunOutcome::kTimeout : RunOutcome::kFault;
}

}  // namespace

void LoopExperiment::RecordRuns(const ShadowAnswer& answer, const std::vector<RunSpec>& runs,
                                int32_t skip) {
  uint64_t trips = 0;
  for (const ShadowRun& result : answer.runs) {
    const auto index = static_cast<size_t>(result.run);
    if (index >= runs.size() || runs[index].variant != kCountIndex || !result.ok) continue;
    trips = std::max(trips, result.iterations / result.instances);
  }
  if (trips > 0) trips_.push_back(trips);
  std::map<int32_t, double> instances = InstancesOf(answer, runs);
  for (const ShadowRun& result : answer.runs) {
    const auto index = static_cast<size_t>(result.run);
    if (index >= runs.size()) continue;
    // The last warm-up is the base before the first variant.
    if (result.run + 1 < skip && runs[index].variant != kCountIndex) continue;
    if (IsTripCheck(runs[index].variant)) continue;
    RunSample sample;
    sample.shadow = shadows_;
    sample.order = static_cast<uint32_t>(result.run);
    sample.thread = result.thread;
    sample.variant = installed_.names[static_cast<size_t>(runs[index].variant)].Text();
    sample.cycles = static_cast<double>(result.cycles) / instances[result.thread];
    sample.iterations = result.iterations / result.instances;
    sample.status = OutcomeOf(result);
    runs_.push_back(std::move(sample));
  }
}

void LoopExperiment::ForgetRuns() {
  runs_.clear();
  reduction_ = {};
  trip_classes_.clear();
}

void LoopExperiment::Reduce() {
  ReduceOptions options;
  options.probe_cycles = probe_cycles_ / static_cast<double>(std::max<uint64_t>(1, instances_));
  for (size_t i = 0; i < installed_.names.size(); ++i)
    options.base_of[installed_.names[i].Text()] = CopyOf(i).base.Text();
  reduction_ = ReduceRuns(runs_, options);
  trip_classes_ = TripClassesOf(runs_, options);
  // Where no variant is compared with REF itself, the next base that computes what the loop computes.
  for (const char* base : {"REF", "REF_FTZ"}) {
    const double cycles = ThreadCycles(reduction_.figures, base);
    if (cycles <= 0) continue;
    run_cycles_ = cycles;
    break;
  }
}

StagePlan LoopExperiment::Plan() const {
  StagePlan plan;
  plan.asked = setup_.asked;
  plan.repetitions = static_cast<uint32_t>(setup_.repetitions);
  if (TripsVary(trips_)) plan.instances = std::min(plan.repetitions, kMostInstances);
  for (const Reference& reference : installed_.copies[kRefIndex].references)
    plan.groups = std::max(plan.groups, reference.group + 1);
  return plan;
}

// Once all else is known: short and long instances are judged apart, and each class needs some of them.
std::vector<std::string> LoopExperiment::MissingInstances() const {
  return InstanceStage(Measurement(0), Plan());
}

std::vector<std::string> LoopExperiment::Missing() const {
  const StagePlan plan = Plan();
  // The stages also name variants that nobody asked for, which may not be installed: they must not hide the stages after them.
  LoopMeasurement known = Measurement(0);
  std::vector<std::string> missing;
  for (bool again = true; missing.empty() && again;) {
    again = false;
    for (const std::string& name : NextStage(known, plan)) {
      const int32_t index = IndexOf(name);
      if (index > kTraceIndex && IdlePartOf(installed_, static_cast<size_t>(index)) == nullptr) {
        missing.push_back(name);
        continue;
      }
      known.refusals.push_back({name, 0, "not installed, or idle"});
      again = true;
    }
  }
  return missing;
}

void LoopExperiment::DescribeCopies(std::vector<VariantFigures>& all) const {
  for (VariantFigures& figures : all) {
    const int32_t index = IndexOf(figures.variant);
    if (index < 0) continue;
    figures.edits = CopyOf(static_cast<size_t>(index)).edits;
  }
}

InstalledLoop LoopExperiment::AsRun() const {
  InstalledLoop loop = installed_;
  for (size_t i = 0; i < loop.copies.size(); ++i) loop.copies[i] = CopyOf(i);
  return loop;
}

LoopMeasurement LoopExperiment::Measurement(uint64_t revision) const {
  LoopMeasurement out;
  out.profile_id = setup_.profile_id;
  out.node = setup_.node;
  out.pid = setup_.rank.pid;
  out.rank = setup_.rank.rank;
  out.loop_id = setup_.loop_id;
  out.location_key = setup_.location_key;
  out.revision = revision;
  out.state = state_;
  out.reason = reason_;
  out.team = entry_count_.team;
  if (live_cycles_ > 0 && run_cycles_ > 0 && !reduction_.figures.empty()) {
    std::vector<uint64_t> live = live_;
    std::sort(live.begin(), live.end());
    const auto at = [&](double q) {
      return static_cast<double>(
          live[static_cast<size_t>(q * static_cast<double>(live.size() - 1))]);
    };
    out.fidelity = {run_cycles_ / live_cycles_, run_cycles_ / at(0.75), run_cycles_ / at(0.25)};
  }
  if (shadows_ > 0)
    out.protocol = absl::StrCat(ProtocolName(evict_), new_placements_ ? ", branches as new" : "");
  out.trips = TripDeciles(trips_);
  out.figures = reduction_.figures;
  DescribeCopies(out.figures);
  out.trip_classes = trip_classes_;
  for (TripClass& trips : out.trip_classes) DescribeCopies(trips.figures);
  out.refusals = installed_.refusals;
  out.refusals.insert(out.refusals.end(), reduction_.refusals.begin(), reduction_.refusals.end());
  out.refusals.insert(out.refusals.end(), trip_refusals_.begin(), trip_refusals_.end());
  DescribeMode(out);
  if (stage_ == Stage::kMeasure || state_ == MeasureState::kOpen)
    out.open = OpenVariants(setup_.asked, out);
  out.references = trace_.references;
  out.excluded_paths = installed_.excluded_paths;
  out.instances = instances_;
  if (with_listings_ && state_ != MeasureState::kRefused)
    out.listings = MakeListings(AsRun(), out.figures, setup_.bias);
  out.cost = cost_;
  return out;
}

}  // namespace perfd::agent
