#include "core/json/verdict_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/analysis/trip_classes.h"

namespace perfd {
namespace {

using Json = nlohmann::ordered_json;

std::string Address(uint64_t address) {
  return absl::StrCat("0x", absl::Hex(address));
}

// "memory bound" -> "memory_bound".
std::string Key(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

Json RatioToJson(const Ratio& ratio) {
  return {{"value", ratio.value}, {"low", ratio.low}, {"high", ratio.high}};
}

// "" where it is not known.
const char* CachesKey(CachesBefore caches) {
  switch (caches) {
    case CachesBefore::kUnknown:
      return "";
    case CachesBefore::kWarm:
      return "warm";
    case CachesBefore::kL1Evicted:
      return "L1_evicted";
    case CachesBefore::kL2Evicted:
      return "L2_evicted";
    case CachesBefore::kCold:
      return "cold";
  }
  return "";
}

Json FidelityToJson(const Fidelity& fidelity) {
  return {{"value", fidelity.value},
          {"low", fidelity.low},
          {"high", fidelity.high},
          {"live_instances", fidelity.live_instances},
          {"runs", fidelity.runs},
          {"shadows", fidelity.shadows},
          {"caches", CachesKey(fidelity.caches)},
          {"reason", FidelityReasonKey(fidelity.reason)},
          {"why", FidelityReasonName(fidelity.reason)}};
}

Json CostToJson(const InjectionCost& cost) {
  return {{"stops", cost.stops},
          {"stop_ns", cost.stop_ns},
          {"longest_stop_ns", cost.longest_stop_ns},
          {"shadows", cost.shadows},
          {"failed_arms", cost.failed_arms},
          {"pause_ns", cost.pause_ns},
          {"longest_pause_ns", cost.longest_pause_ns},
          {"later_fault_ns", cost.later_fault_ns},
          {"pass_through_ns", cost.pass_through_ns},
          {"recoveries", cost.recoveries},
          {"recovery_ns", cost.recovery_ns},
          {"shadow_cpu_ns", cost.shadow_cpu_ns}};
}

// null: no dry run, or refused.
Json PredictedToJson(const PredictedCost& cost) {
  if (cost == PredictedCost{}) return nullptr;
  return {{"fork_ns", cost.fork_ns},
          {"later_fault_ns", cost.later_fault_ns},
          {"most_run_ns", cost.most_run_ns}};
}

Json RefusalsToJson(const std::vector<Refusal>& refusals) {
  Json list = Json::array();
  for (const Refusal& r : refusals)
    list.push_back({{"variant", r.variant},
                    {"instruction", Address(r.instruction)},
                    {"reason", r.reason},
                    {"count", r.count}});
  return list;
}

Json FiguresToJson(const std::vector<VariantFigures>& figures) {
  Json list = Json::array();
  for (const VariantFigures& f : figures)
    list.push_back({{"variant", f.variant},
                    {"base", f.base},
                    {"thread", f.thread == kTeam ? Json("team") : Json(f.thread)},
                    {"saturation", RatioToJson(ShownRatio(f))},
                    {"cycles", f.cycles},
                    {"cycles_min", f.cycles_min},
                    {"iterations", f.iterations},
                    {"stability", f.stability},
                    {"valid_runs", f.valid_runs},
                    {"invalid_runs", f.invalid_runs},
                    {"shadows", f.shadows},
                    {"has_interval", ShownRatio(f).has_interval()},
                    {"changed", f.edits.changed},
                    {"kept", f.edits.kept},
                    {"pinned", f.edits.pinned},
                    {"accesses", f.edits.accesses}});
  return list;
}

Json TripClassesToJson(const std::vector<TripClass>& classes,
                       const std::vector<ClassVerdict>& verdicts) {
  Json list = Json::array();
  const std::vector<double> times = TimeOfClasses(classes);
  for (size_t i = 0; i < classes.size(); ++i) {
    const ClassVerdict verdict = i < verdicts.size() ? verdicts[i] : ClassVerdict{};
    list.push_back({{"shortest", classes[i].shortest},
                    {"longest", classes[i].longest},
                    {"instances", classes[i].instances},
                    {"time", times[i]},
                    {"bound", Key(BoundName(verdict.bound))},
                    {"sure", verdict.sure},
                    {"why", SilenceName(verdict.why)},
                    {"figures", FiguresToJson(classes[i].figures)}});
  }
  return list;
}

Json ReferencesToJson(const std::vector<TracedReference>& references) {
  Json list = Json::array();
  for (const TracedReference& r : references)
    list.push_back({{"instruction", Address(r.instruction)},
                    {"reads", r.reads},
                    {"writes", r.writes},
                    {"group", r.group},
                    {"bytes", r.bytes},
                    {"lowest", Address(r.lowest)},
                    {"highest", Address(r.highest)},
                    {"shared", r.shared}});
  return list;
}

Json RankToJson(const RankVerdict& rank) {
  const LoopMeasurement& m = rank.measurement;
  Json deciles = Json::array();
  if (m.trips.instances > 0) deciles = m.trips.decile;
  return {{"rank", m.rank},
          {"node", m.node},
          {"pid", m.pid},
          {"bound", Key(BoundName(rank.bound))},
          {"outlier", rank.outlier},
          {"why", SilenceName(rank.why)},
          {"revision", m.revision},
          {"state", Key(MeasureStateName(m.state))},
          {"reason", m.reason},
          {"team", m.team},
          {"fidelity", FidelityToJson(m.fidelity)},
          {"protocol", m.protocol},
          {"instances_in_a_row", m.instances},
          {"instances", m.trips.instances},
          {"trip_deciles", deciles},
          {"trip_classes", TripClassesToJson(m.trip_classes, ClassVerdictsOf(m))},
          {"figures", FiguresToJson(m.figures)},
          {"refusals", RefusalsToJson(m.refusals)},
          {"open", m.open},
          {"references", ReferencesToJson(m.references)},
          {"cost", CostToJson(m.cost)},
          {"predicted", PredictedToJson(m.predicted)},
          {"provenance", ProvenanceName(m.provenance)}};
}

Json SummariesToJson(const std::vector<VariantSummary>& variants) {
  Json list = Json::array();
  for (const VariantSummary& v : variants)
    list.push_back({{"variant", v.variant},
                    {"base", v.base},
                    {"saturation", RatioToJson(v.saturation)},
                    {"rank_min", v.rank_min},
                    {"rank_max", v.rank_max},
                    {"min_rank", v.min_rank},
                    {"max_rank", v.max_rank},
                    {"ranks", v.ranks.measured},
                    {"ranks_asked", v.ranks.asked},
                    {"valid_runs", v.valid_runs},
                    {"invalid_runs", v.invalid_runs},
                    {"shadows", v.shadows},
                    {"has_interval", v.saturation.has_interval()},
                    {"cycles", v.cycles},
                    {"changed", v.edits.changed},
                    {"kept", v.edits.kept},
                    {"pinned", v.edits.pinned},
                    {"accesses", v.edits.accesses}});
  return list;
}

Json ListingsToJson(const std::vector<VariantListing>& listings) {
  Json list = Json::array();
  for (const VariantListing& listing : listings) {
    Json lines = Json::array();
    for (const ListingLine& line : listing.lines)
      lines.push_back({{"address", Address(line.address)},
                       {"original", line.original},
                       {"changed", line.changed}});
    list.push_back({{"variant", listing.variant}, {"lines", lines}});
  }
  return list;
}

Json GainsToJson(const std::vector<Gain>& gains) {
  Json list = Json::array();
  for (const Gain& gain : gains)
    list.push_back({{"variant", gain.variant},
                    {"name", gain.name},
                    {"of_job", RatioToJson(gain.of_job)},
                    {"ranks", gain.ranks.measured},
                    {"ranks_asked", gain.ranks.asked}});
  return list;
}

}  // namespace

Json VerdictToJson(const LoopVerdict& loop) {
  Json ranks = Json::array();
  for (const RankVerdict& rank : loop.ranks) ranks.push_back(RankToJson(rank));
  return {{"loop_id", loop.loop_id},
          {"location_key", loop.location_key},
          {"state", Key(MeasureStateName(loop.state))},
          {"bound", Key(BoundName(loop.bound))},
          {"sure", loop.sure},
          {"why", SilenceName(loop.why)},
          {"level", Key(DataLevelName(loop.level))},
          {"agreement", loop.agreement},
          {"share", loop.share},
          {"slowest_share", loop.slowest_share},
          {"slowest_rank", loop.slowest_rank},
          {"ranks_measured", loop.ranks_measured},
          {"ranks_total", loop.ranks_total},
          {"variants", SummariesToJson(loop.variants)},
          {"gains", GainsToJson(loop.gains)},
          {"gain_provenance", ProvenanceName(Provenance::kEstimated)},
          {"remarks", loop.remarks},
          {"fidelity", FidelityToJson(loop.fidelity)},
          {"protocol", loop.protocol},
          {"refusals", RefusalsToJson(loop.refusals)},
          {"open", loop.open},
          {"cost", CostToJson(loop.cost)},
          {"predicted", PredictedToJson(loop.predicted)},
          {"listings", ListingsToJson(loop.listings)},
          {"ranks", ranks},
          {"ranks_left_out", loop.ranks_left_out},
          {"trip_classes", TripClassesToJson(loop.trips.classes, loop.trips.verdicts)},
          {"trip_rank", loop.trips.rank},
          {"provenance", ProvenanceName(Provenance::kShadow)}};
}

Json InjectionToJson(const InjectionTotal& total) {
  return {{"cost", CostToJson(total.sum)},
          {"added_wall_ns", total.added_wall_ns},
          {"added_ratio", total.added_ratio},
          {"shared_ns", total.shared_ns},
          {"pauses_lost", total.pauses_lost}};
}

Json AuditToJson(const std::vector<AuditEntry>& entries) {
  Json list = Json::array();
  for (const AuditEntry& e : entries)
    list.push_back({{"unix_ns", e.unix_ns},
                    {"profile", e.profile_id},
                    {"requester", e.origin.requester},
                    {"brought_by", e.origin.brought_by},
                    {"node", e.node},
                    {"pid", e.pid},
                    {"loop", e.loop_id},
                    {"action", e.action},
                    {"address", Address(e.address)},
                    {"original_bytes", e.original_bytes},
                    {"written_bytes", e.written_bytes},
                    {"pause_ns", e.pause_ns},
                    {"outcome", e.outcome}});
  return {{"entries", list}};
}

}  // namespace perfd
