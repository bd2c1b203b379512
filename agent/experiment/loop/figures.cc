#include "agent/experiment/loop/figures.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/experiment/loop/in_situ.h"
#include "agent/experiment/loop/protocol.h"
#include "agent/experiment/plan/listing.h"
#include "agent/experiment/plan/next_stage.h"
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

// Unless the trace shows that each pass stores to another address.
bool CutsMemoryChain(const LoopKnowledge& known, const CodeCopy& copy) {
  const std::vector<uint64_t>& steps = known.probe.trace.stepping;
  return std::any_of(
      copy.pairs.chains_cut.begin(), copy.pairs.chains_cut.end(), [&](const AccessPair& pair) {
        const uint64_t listed = (RuntimeAddress(pair.store) - known.setup.bias).value();
        return std::find(steps.begin(), steps.end(), listed) == steps.end();
      });
}

void DescribeCopies(const LoopKnowledge& known, std::vector<VariantFigures>& all) {
  for (VariantFigures& figures : all) {
    const int32_t index = IndexOf(known, figures.variant);
    if (index < 0) continue;
    const CodeCopy& copy = CopyOf(known, static_cast<size_t>(index));
    figures.edits = copy.edits;
    figures.edits.cuts_memory_chain = CutsMemoryChain(known, copy);
  }
}

StagePlan PlanOf(const LoopKnowledge& known) {
  StagePlan plan;
  plan.asked = known.setup.asked;
  plan.repetitions = static_cast<uint32_t>(known.setup.repetitions);
  if (TripsVary(known.trips.counts)) plan.instances = std::min(plan.repetitions, kMostInstances);
  for (const Reference& reference : known.installed.copies[kRefIndex].references)
    plan.groups = std::max(plan.groups, reference.group + 1);
  return plan;
}

void RefuseWhatIsIdle(const LoopKnowledge& known, LoopMeasurement& out) {
  const InstalledLoop& loop = known.installed;
  for (const std::string& asked : known.setup.asked) {
    const int32_t at = IndexOf(known, asked);
    if (at < 0 || static_cast<size_t>(at) >= loop.copies.size()) continue;
    const VariantName* const idle = IdlePartOf(known, static_cast<size_t>(at));
    if (idle == nullptr) continue;
    const bool itself = idle == &loop.names[static_cast<size_t>(at)];
    const std::string who = itself ? "it" : absl::StrCat("its part ", idle->Text());
    out.refusals.push_back({asked, 0, who + " changes no instruction of this loop", 1});
  }
}

std::string ProtocolText(const LoopKnowledge& known) {
  const Protocol& protocol = known.protocol;
  const std::string repeated = absl::StrCat(ProtocolName(protocol.evict),
                                            protocol.new_placements ? ", branches as new" : "");
  return absl::StrCat(protocol.successive ? kSuccessiveProtocol
                      : protocol.natural  ? kNaturalProtocol
                                          : repeated,
                      known.live.lone ? ", one thread at a time" : "");
}

// What verdicts rest on. The rest of a measurement is only needed where it is sent.
LoopMeasurement Evidence(const LoopKnowledge& known) {
  LoopMeasurement out;
  out.team = known.live.entries.team;
  out.fidelity = FidelityOf(known);
  if (known.shadows.count > 0) out.protocol = ProtocolText(known);
  out.trips = TripDeciles(known.trips.counts);
  out.figures = known.runs.reduction.figures;
  DescribeCopies(known, out.figures);
  for (const auto* refusals : {&known.installed.refusals, &known.runs.reduction.refusals,
                               &known.trips.refusals, &known.apart.refusals})
    out.refusals.insert(out.refusals.end(), refusals->begin(), refusals->end());
  RefuseWhatIsIdle(known, out);
  DescribeMode(known, out);
  out.references = known.probe.trace.references;
  out.instances = known.batch.instances;
  return out;
}

// The stages also name variants that nobody asked for, which may not be installed: they must not hide the stages after them.
std::vector<std::string> MissingOf(const LoopKnowledge& known, LoopMeasurement evidence,
                                   const StagePlan& plan) {
  std::vector<std::string> missing;
  for (bool again = true; missing.empty() && again;) {
    again = false;
    for (const std::string& name : NextStage(evidence, plan)) {
      const int32_t index = IndexOf(known, name);
      if (index > kTraceIndex && IdlePartOf(known, static_cast<size_t>(index)) == nullptr) {
        missing.push_back(name);
        continue;
      }
      evidence.refusals.push_back({name, 0, "not installed, or idle"});
      again = true;
    }
  }
  return missing;
}

InstalledLoop AsRun(const LoopKnowledge& known) {
  InstalledLoop loop = known.installed;
  for (size_t i = 0; i < loop.copies.size(); ++i) loop.copies[i] = CopyOf(known, i);
  return loop;
}

// Runs that one thread at least did not come to the end of, because the loop around ended: neither good nor bad.
std::set<int32_t> CutShort(const ShadowAnswer& answer) {
  std::set<int32_t> runs;
  for (const ShadowRun& run : answer.runs) {
    if (OutcomeOf(run) == RunOutcome::kCutShort) runs.insert(run.run);
  }
  return runs;
}

}  // namespace

RunOutcome OutcomeOf(const ShadowRun& run) {
  return run.ok ? RunOutcome::kOk : run.outcome;
}

std::map<int32_t, double> InstancesOf(const ShadowAnswer& answer,
                                      const std::vector<RunSpec>& runs) {
  std::map<int32_t, double> instances;
  for (const ShadowRun& run : answer.runs) {
    const auto index = static_cast<size_t>(run.run);
    if (!run.ok || index >= runs.size()) continue;
    const auto number = static_cast<double>(run.instances);
    if (runs[index].variant == kCountIndex)
      instances[run.thread] = number;
    else
      instances.try_emplace(run.thread, number);
  }
  return instances;
}

void RecordRuns(LoopKnowledge& known, const ShadowAnswer& answer, const std::vector<RunSpec>& runs,
                int32_t skip) {
  uint64_t trips = 0;
  for (const ShadowRun& result : answer.runs) {
    const auto index = static_cast<size_t>(result.run);
    if (index >= runs.size() || runs[index].variant != kCountIndex || !result.ok) continue;
    trips = std::max(trips, result.iterations / result.instances);
  }
  if (trips > 0) known.trips.counts.push_back(trips);
  std::map<int32_t, double> instances = InstancesOf(answer, runs);
  const std::set<int32_t> cut_short = CutShort(answer);
  for (const ShadowRun& result : answer.runs) {
    const auto index = static_cast<size_t>(result.run);
    if (index >= runs.size() || cut_short.contains(result.run)) continue;
    const int32_t variant = runs[index].variant;
    if (result.run + 1 < skip && variant != kCountIndex) continue;
    if (IsTripCheck(known, variant) || runs[index].form == CopyForm::kApartTraced) continue;
    RunSample sample;
    sample.shadow = known.shadows.count;
    sample.order = static_cast<uint32_t>(result.run);
    sample.thread = result.thread;
    sample.variant = known.installed.names[static_cast<size_t>(variant)].Text();
    sample.cycles = static_cast<double>(result.cycles) / instances[result.thread];
    sample.iterations = result.iterations / result.instances;
    sample.status = OutcomeOf(result);
    known.runs.samples.push_back(std::move(sample));
  }
}

void Reduce(LoopKnowledge& known) {
  ReduceOptions options;
  options.probe_cycles = ProbeCyclesOfRun(known);
  for (size_t i = 0; i < known.installed.names.size(); ++i)
    options.base_of[known.installed.names[i].Text()] = CopyOf(known, i).base.Text();
  known.runs.reduction = ReduceRuns(known.runs.samples, options);
  known.runs.trip_classes = TripClassesOf(known.runs.samples, options);
  // Where no variant is compared with REF itself, the next base that computes what the loop computes.
  for (const char* base : {"REF", "REF_FTZ"}) {
    const double cycles = ThreadCycles(known.runs.reduction.figures, base);
    if (cycles <= 0) continue;
    known.runs.cycles = cycles;
    break;
  }
}

// Instances come once all else is known: short and long ones are judged apart, and each class needs some of them.
void UpdateMissing(LoopKnowledge& known) {
  const StagePlan plan = PlanOf(known);
  const LoopMeasurement evidence = Evidence(known);
  known.runs.missing = MissingOf(known, evidence, plan);
  known.runs.missing_instances = InstanceStage(evidence, plan);
}

bool HasFigures(const LoopKnowledge& known) {
  return !known.runs.reduction.figures.empty();
}

LoopMeasurement MeasurementOf(const LoopKnowledge& known, const Position& position, bool listings) {
  LoopMeasurement out = Evidence(known);
  const LoopSetup& setup = known.setup;
  out.profile_id = setup.profile_id;
  out.node = setup.node;
  out.pid = setup.rank.pid;
  out.rank = setup.rank.rank;
  out.loop_id = setup.loop_id;
  out.location_key = setup.location_key;
  out.state = position.state;
  out.reason = position.reason;
  out.trip_classes = known.runs.trip_classes;
  for (TripClass& trips : out.trip_classes) DescribeCopies(known, trips.figures);
  if (StageOf(position.phase) == Stage::kMeasure || position.state == MeasureState::kOpen)
    out.open = OpenVariants(setup.asked, out);
  out.excluded_paths = known.installed.excluded_paths;
  if (listings && position.state != MeasureState::kRefused)
    out.listings = MakeListings(AsRun(known), out.figures, setup.bias);
  out.cost = known.shadows.cost;
  return out;
}

}  // namespace perfd::agent
