// Measurements of loops, and the audit log.
#include "core/wire/variant_wire.h"

#include "core/base/status_macros.h"
#include "core/wire/check/check.h"

namespace perfd::wire {
namespace {

constexpr double kMaxRatio = 1e15;
constexpr double kMaxCycles = 1e18;

absl::Status CheckNs(int64_t ns, absl::string_view field) {
  return CheckRange(ns, 0, static_cast<int64_t>(kMaxTotal), field);
}

v1::VariantFigures ToProto(const VariantFigures& figures) {
  v1::VariantFigures out;
  out.set_variant(CleanText(figures.variant));
  out.set_base(CleanText(figures.base));
  out.set_thread(figures.thread);
  *out.mutable_saturation() = wire::ToProto(figures.saturation);
  out.set_cycles(figures.cycles);
  out.set_cycles_min(figures.cycles_min);
  out.set_iterations(figures.iterations);
  out.set_stability(figures.stability);
  out.set_valid_runs(figures.valid_runs);
  out.set_invalid_runs(figures.invalid_runs);
  out.set_shadows(figures.shadows);
  out.set_changed(figures.edits.changed);
  out.set_pinned(figures.edits.pinned);
  out.set_accesses(figures.edits.accesses);
  out.set_kept(figures.edits.kept);
  out.set_unchained(figures.edits.unchained);
  out.set_cuts_memory_chain(figures.edits.cuts_memory_chain);
  return out;
}

absl::Status CheckFigures(const v1::VariantFigures& f) {
  RETURN_IF_ERROR(CheckText(f.variant(), "measurement.figures.variant"));
  RETURN_IF_ERROR(CheckText(f.base(), "measurement.figures.base"));
  RETURN_IF_ERROR(CheckRange(f.thread(), kTeam, INT32_MAX, "measurement.figures.thread"));
  RETURN_IF_ERROR(CheckNumber(f.cycles(), 0, kMaxCycles, "measurement.figures.cycles"));
  RETURN_IF_ERROR(CheckNumber(f.cycles_min(), 0, kMaxCycles, "measurement.figures.cycles_min"));
  RETURN_IF_ERROR(CheckNumber(f.iterations(), 0, kMaxCycles, "measurement.figures.iterations"));
  RETURN_IF_ERROR(CheckNumber(f.stability(), 0, kMaxRatio, "measurement.figures.stability"));
  RETURN_IF_ERROR(CheckRange(f.changed(), 0, INT32_MAX, "measurement.figures.edits.changed"));
  RETURN_IF_ERROR(CheckRange(f.kept(), 0, INT32_MAX, "measurement.figures.edits.kept"));
  RETURN_IF_ERROR(CheckRange(f.accesses(), 0, INT32_MAX, "measurement.figures.edits.accesses"));
  return CheckRange(f.pinned(), 0, f.accesses(), "measurement.figures.edits.pinned");
}

absl::StatusOr<VariantFigures> FromProto(const v1::VariantFigures& f) {
  RETURN_IF_ERROR(CheckFigures(f));
  VariantFigures out;
  out.variant = f.variant();
  out.base = f.base();
  out.thread = f.thread();
  ASSIGN_OR_RETURN(out.saturation, wire::FromProto(f.saturation()));
  out.cycles = f.cycles();
  out.cycles_min = f.cycles_min();
  out.iterations = f.iterations();
  out.stability = f.stability();
  out.valid_runs = f.valid_runs();
  out.invalid_runs = f.invalid_runs();
  out.shadows = f.shadows();
  out.edits.changed = f.changed();
  out.edits.pinned = f.pinned();
  out.edits.accesses = f.accesses();
  out.edits.kept = f.kept();
  out.edits.unchained = f.unchained();
  out.edits.cuts_memory_chain = f.cuts_memory_chain();
  return out;
}

void FillTrips(const TripCounts& trips, v1::TripCounts& out) {
  out.set_instances(trips.instances);
  if (trips.instances == 0) return;
  for (double value : trips.decile) out.add_decile(value);
}

absl::Status ReadTrips(const v1::TripCounts& trips, TripCounts& out) {
  out.instances = trips.instances();
  const bool none = trips.instances() == 0 && trips.decile_size() == 0;
  if (none) return absl::OkStatus();
  if (static_cast<size_t>(trips.decile_size()) != out.decile.size())
    return absl::InvalidArgumentError("measurement.trips: eleven values are needed");
  for (int i = 0; i < trips.decile_size(); ++i) {
    RETURN_IF_ERROR(CheckNumber(trips.decile(i), 0, kMaxCycles, "measurement.trips.decile"));
    out.decile[static_cast<size_t>(i)] = trips.decile(i);
  }
  return absl::OkStatus();
}

void FillReference(const TracedReference& reference, v1::TracedReference& out) {
  out.set_instruction(reference.instruction);
  out.set_reads(reference.reads);
  out.set_writes(reference.writes);
  out.set_group(reference.group);
  out.set_bytes(reference.bytes);
  out.set_lowest(reference.lowest);
  out.set_highest(reference.highest);
  out.set_shared(reference.shared);
}

absl::Status ReadReferences(const v1::LoopMeasurement& loop, LoopMeasurement& out) {
  RETURN_IF_ERROR(CheckCount(loop.references_size(), kMaxReferences, "measurement.references"));
  for (const v1::TracedReference& r : loop.references()) {
    RETURN_IF_ERROR(CheckRange(r.group(), -1, INT32_MAX, "measurement.references.group"));
    RETURN_IF_ERROR(CheckRange(r.bytes(), 0, INT32_MAX, "measurement.references.bytes"));
    out.references.push_back({r.instruction(), r.reads(), r.writes(), r.group(), r.bytes(),
                              r.lowest(), r.highest(), r.shared()});
  }
  return absl::OkStatus();
}

absl::Status ReadLists(const v1::LoopMeasurement& loop, LoopMeasurement& out) {
  RETURN_IF_ERROR(CheckCount(loop.figures_size(), kMaxFigures, "measurement.figures"));
  RETURN_IF_ERROR(CheckCount(loop.refusals_size(), kMaxRefusals, "measurement.refusals"));
  RETURN_IF_ERROR(CheckCount(loop.open_size(), kMaxVariants, "measurement.open"));
  RETURN_IF_ERROR(CheckCount(loop.excluded_paths_size(), kMaxExcludedPaths, "measurement.detours"));
  RETURN_IF_ERROR(CheckCount(loop.listings_size(), kMaxVariants, "measurement.listings"));
  RETURN_IF_ERROR(
      CheckCount(loop.trip_classes_size(), kMaxTripClasses, "measurement.trip_classes"));
  for (const v1::TripClass& trips : loop.trip_classes()) {
    ASSIGN_OR_RETURN(TripClass read, wire::FromProto(trips));
    out.trip_classes.push_back(std::move(read));
  }
  for (const v1::VariantFigures& figures : loop.figures()) {
    ASSIGN_OR_RETURN(VariantFigures read, FromProto(figures));
    out.figures.push_back(std::move(read));
  }
  for (const v1::Refusal& refusal : loop.refusals()) {
    ASSIGN_OR_RETURN(Refusal read, wire::FromProto(refusal));
    out.refusals.push_back(std::move(read));
  }
  for (const std::string& variant : loop.open()) {
    RETURN_IF_ERROR(CheckText(variant, "measurement.open"));
    out.open.push_back(variant);
  }
  for (const std::string& excluded_path : loop.excluded_paths()) {
    RETURN_IF_ERROR(CheckText(excluded_path, "measurement.detours"));
    out.excluded_paths.push_back(excluded_path);
  }
  for (const v1::VariantListing& listing : loop.listings()) {
    ASSIGN_OR_RETURN(VariantListing read, wire::FromProto(listing));
    out.listings.push_back(std::move(read));
  }
  return ReadReferences(loop, out);
}

absl::Status ReadIdentity(const v1::LoopMeasurement& loop, LoopMeasurement& out) {
  RETURN_IF_ERROR(CheckText(loop.profile_id(), "measurement.profile_id"));
  RETURN_IF_ERROR(CheckText(loop.node(), "measurement.node"));
  RETURN_IF_ERROR(CheckText(loop.loop_id(), "measurement.loop_id"));
  RETURN_IF_ERROR(CheckText(loop.location_key(), "measurement.location_key"));
  RETURN_IF_ERROR(CheckRange(loop.pid(), 0, INT32_MAX, "measurement.pid"));
  RETURN_IF_ERROR(CheckRange(loop.rank(), 0, INT32_MAX, "measurement.rank"));
  if (loop.loop_id().empty()) return absl::InvalidArgumentError("measurement.loop_id: empty");
  out.profile_id = loop.profile_id();
  out.node = loop.node();
  out.loop_id = loop.loop_id();
  out.location_key = loop.location_key();
  out.pid = loop.pid();
  out.rank = loop.rank();
  out.revision = loop.revision();
  return absl::OkStatus();
}

}  // namespace

// A value without an interval could be anywhere: readers of before take it as such.
v1::Ratio ToProto(const Ratio& ratio) {
  const bool anywhere = ratio.value > 0 && !ratio.has_interval();
  v1::Ratio out;
  out.set_value(ratio.value);
  out.set_low(ratio.low);
  out.set_high(anywhere ? kMaxRatio : ratio.high);
  return out;
}

absl::StatusOr<Ratio> FromProto(const v1::Ratio& ratio) {
  RETURN_IF_ERROR(CheckNumber(ratio.value(), 0, kMaxRatio, "ratio.value"));
  RETURN_IF_ERROR(CheckNumber(ratio.low(), 0, ratio.value(), "ratio.low"));
  RETURN_IF_ERROR(CheckNumber(ratio.high(), ratio.value(), kMaxRatio, "ratio.high"));
  const bool anywhere = ratio.low() == 0 && ratio.high() >= kMaxRatio;
  return Ratio{ratio.value(), ratio.low(), anywhere ? 0 : ratio.high()};
}

namespace {

v1::RefusalKind ToProto(RefusalKind kind) {
  switch (kind) {
    case RefusalKind::kOther:
      return v1::REFUSAL_KIND_OTHER;
    case RefusalKind::kMachineChanged:
      return v1::REFUSAL_KIND_MACHINE_CHANGED;
    case RefusalKind::kNotRun:
      return v1::REFUSAL_KIND_NOT_RUN;
  }
  return v1::REFUSAL_KIND_OTHER;
}

// Agents from before it was told send none.
absl::StatusOr<RefusalKind> FromProto(v1::RefusalKind kind) {
  switch (kind) {
    case v1::REFUSAL_KIND_UNSPECIFIED:
    case v1::REFUSAL_KIND_OTHER:
      return RefusalKind::kOther;
    case v1::REFUSAL_KIND_MACHINE_CHANGED:
      return RefusalKind::kMachineChanged;
    case v1::REFUSAL_KIND_NOT_RUN:
      return RefusalKind::kNotRun;
    default:
      return absl::InvalidArgumentError("refusal.kind: unknown");
  }
}

}  // namespace

v1::Refusal ToProto(const Refusal& refusal) {
  v1::Refusal out;
  out.set_variant(CleanText(refusal.variant));
  out.set_instruction(refusal.instruction);
  out.set_reason(CleanText(refusal.reason));
  out.set_count(refusal.count);
  out.set_kind(ToProto(refusal.kind));
  return out;
}

absl::StatusOr<Refusal> FromProto(const v1::Refusal& refusal) {
  RETURN_IF_ERROR(CheckText(refusal.variant(), "refusal.variant"));
  RETURN_IF_ERROR(CheckText(refusal.reason(), "refusal.reason"));
  RETURN_IF_ERROR(CheckTotal(refusal.count(), "refusal.count", kMaxSampleTotal));
  ASSIGN_OR_RETURN(const RefusalKind kind, FromProto(refusal.kind()));
  return Refusal{refusal.variant(), refusal.instruction(), refusal.reason(), refusal.count(), kind};
}

v1::VariantListing ToProto(const VariantListing& listing) {
  v1::VariantListing out;
  out.set_variant(CleanText(listing.variant));
  for (const ListingLine& line : listing.lines) {
    v1::ListingLine* to = out.add_lines();
    to->set_address(line.address);
    to->set_original(CleanText(line.original));
    to->set_changed(CleanText(line.changed));
  }
  return out;
}

absl::StatusOr<VariantListing> FromProto(const v1::VariantListing& listing) {
  RETURN_IF_ERROR(CheckText(listing.variant(), "listing.variant"));
  RETURN_IF_ERROR(CheckCount(listing.lines_size(), kMaxListingLines, "listing.lines"));
  VariantListing out{listing.variant(), {}};
  for (const v1::ListingLine& line : listing.lines()) {
    RETURN_IF_ERROR(CheckText(line.original(), "listing.lines.original"));
    RETURN_IF_ERROR(CheckText(line.changed(), "listing.lines.changed"));
    out.lines.push_back({line.address(), line.original(), line.changed()});
  }
  return out;
}

v1::InjectionCost ToProto(const InjectionCost& cost) {
  v1::InjectionCost out;
  out.set_stops(cost.stops);
  out.set_stop_ns(cost.stop_ns);
  out.set_longest_stop_ns(cost.longest_stop_ns);
  out.set_shadows(cost.shadows);
  out.set_failed_arms(cost.failed_arms);
  out.set_pause_ns(cost.pause_ns);
  out.set_longest_pause_ns(cost.longest_pause_ns);
  out.set_later_fault_ns(cost.later_fault_ns);
  out.set_pass_through_ns(cost.pass_through_ns);
  out.set_recoveries(cost.recoveries);
  out.set_recovery_ns(cost.recovery_ns);
  out.set_shadow_cpu_ns(cost.shadow_cpu_ns);
  return out;
}

absl::StatusOr<InjectionCost> FromProto(const v1::InjectionCost& cost) {
  RETURN_IF_ERROR(CheckTotal(cost.stops(), "cost.stops"));
  RETURN_IF_ERROR(CheckNs(cost.stop_ns(), "cost.stop_ns"));
  RETURN_IF_ERROR(CheckNs(cost.longest_stop_ns(), "cost.longest_stop_ns"));
  RETURN_IF_ERROR(CheckTotal(cost.shadows(), "cost.shadows"));
  RETURN_IF_ERROR(CheckTotal(cost.failed_arms(), "cost.failed_arms"));
  RETURN_IF_ERROR(CheckNs(cost.pause_ns(), "cost.pause_ns"));
  RETURN_IF_ERROR(CheckNs(cost.longest_pause_ns(), "cost.longest_pause_ns"));
  RETURN_IF_ERROR(CheckNs(cost.later_fault_ns(), "cost.later_fault_ns"));
  RETURN_IF_ERROR(CheckNs(cost.pass_through_ns(), "cost.pass_through_ns"));
  RETURN_IF_ERROR(CheckTotal(cost.recoveries(), "cost.recoveries"));
  RETURN_IF_ERROR(CheckNs(cost.recovery_ns(), "cost.recovery_ns"));
  RETURN_IF_ERROR(CheckNs(cost.shadow_cpu_ns(), "cost.shadow_cpu_ns"));
  return InjectionCost{
      cost.stops(),           cost.stop_ns(),    cost.longest_stop_ns(),  cost.shadows(),
      cost.failed_arms(),     cost.pause_ns(),   cost.longest_pause_ns(), cost.later_fault_ns(),
      cost.pass_through_ns(), cost.recoveries(), cost.recovery_ns(),      cost.shadow_cpu_ns()};
}

v1::PredictedCost ToProto(const PredictedCost& cost) {
  v1::PredictedCost out;
  out.set_fork_ns(cost.fork_ns);
  out.set_later_fault_ns(cost.later_fault_ns);
  out.set_most_run_ns(cost.most_run_ns);
  return out;
}

absl::StatusOr<PredictedCost> FromProto(const v1::PredictedCost& cost) {
  RETURN_IF_ERROR(CheckNs(cost.fork_ns(), "predicted.fork_ns"));
  RETURN_IF_ERROR(CheckNs(cost.later_fault_ns(), "predicted.later_fault_ns"));
  RETURN_IF_ERROR(CheckNs(cost.most_run_ns(), "predicted.most_run_ns"));
  return PredictedCost{cost.fork_ns(), cost.later_fault_ns(), cost.most_run_ns()};
}

v1::TripClass ToProto(const TripClass& trips) {
  v1::TripClass out;
  out.set_shortest(trips.shortest);
  out.set_longest(trips.longest);
  out.set_instances(trips.instances);
  for (const VariantFigures& figures : trips.figures) *out.add_figures() = ToProto(figures);
  return out;
}

absl::StatusOr<TripClass> FromProto(const v1::TripClass& trips) {
  if (trips.shortest() > trips.longest())
    return absl::InvalidArgumentError("trip_classes.longest: below the shortest");
  RETURN_IF_ERROR(CheckCount(trips.figures_size(), kMaxVariants, "trip_classes.figures"));
  TripClass out{trips.shortest(), trips.longest(), trips.instances(), {}};
  for (const v1::VariantFigures& figures : trips.figures()) {
    ASSIGN_OR_RETURN(VariantFigures read, FromProto(figures));
    out.figures.push_back(std::move(read));
  }
  return out;
}

v1::FidelityBasis BasisToProto(const Fidelity& fidelity) {
  v1::FidelityBasis out;
  out.set_live_instances(fidelity.live_instances);
  out.set_runs(fidelity.runs);
  out.set_shadows(fidelity.shadows);
  out.set_caches(WireEnum<v1::CachesBefore>(fidelity.caches));
  out.set_reason(WireEnum<v1::FidelityReason>(fidelity.reason));
  return out;
}

absl::StatusOr<Fidelity> FromProto(const v1::Ratio& ratio, const v1::FidelityBasis& basis) {
  ASSIGN_OR_RETURN(const Ratio read, FromProto(ratio));
  Fidelity out{read.value,   read.low,       read.high, basis.live_instances(),
               basis.runs(), basis.shadows()};
  if (basis.caches() != v1::CACHES_BEFORE_UNSPECIFIED) {
    ASSIGN_OR_RETURN(out.caches,
                     ModelEnum(basis.caches(), CachesBefore::kCold, "fidelity_basis.caches"));
  }
  if (basis.reason() != v1::FIDELITY_REASON_UNSPECIFIED) {
    ASSIGN_OR_RETURN(out.reason, ModelEnum(basis.reason(), FidelityReason::kSharedLines,
                                           "fidelity_basis.reason"));
  }
  return out;
}

v1::LoopMeasurement ToProto(const LoopMeasurement& loop) {
  v1::LoopMeasurement out;
  out.set_profile_id(CleanText(loop.profile_id));
  out.set_node(CleanText(loop.node));
  out.set_pid(loop.pid);
  out.set_rank(loop.rank);
  out.set_loop_id(CleanText(loop.loop_id));
  out.set_location_key(CleanText(loop.location_key));
  out.set_revision(loop.revision);
  out.set_state(WireEnum<v1::MeasureState>(loop.state));
  out.set_reason(CleanText(loop.reason));
  out.set_team(loop.team);
  *out.mutable_fidelity() = ToProto(loop.fidelity.ratio());
  *out.mutable_fidelity_basis() = BasisToProto(loop.fidelity);
  out.set_protocol(CleanText(loop.protocol));
  out.set_instances(loop.instances);
  FillTrips(loop.trips, *out.mutable_trips());
  for (const TripClass& trips : loop.trip_classes) *out.add_trip_classes() = ToProto(trips);
  for (const VariantFigures& figures : loop.figures) *out.add_figures() = ToProto(figures);
  for (const Refusal& refusal : loop.refusals) *out.add_refusals() = ToProto(refusal);
  for (const std::string& variant : loop.open) out.add_open(CleanText(variant));
  for (const std::string& excluded_path : loop.excluded_paths)
    out.add_excluded_paths(CleanText(excluded_path));
  for (const TracedReference& reference : loop.references)
    FillReference(reference, *out.add_references());
  for (const VariantListing& listing : loop.listings) *out.add_listings() = ToProto(listing);
  *out.mutable_cost() = ToProto(loop.cost);
  out.set_provenance(WireEnum<v1::Provenance>(loop.provenance));
  if (loop.predicted != PredictedCost{}) *out.mutable_predicted() = ToProto(loop.predicted);
  return out;
}

absl::StatusOr<LoopMeasurement> FromProto(const v1::LoopMeasurement& loop) {
  LoopMeasurement out;
  RETURN_IF_ERROR(ReadIdentity(loop, out));
  RETURN_IF_ERROR(CheckText(loop.reason(), "measurement.reason"));
  RETURN_IF_ERROR(CheckText(loop.protocol(), "measurement.protocol"));
  RETURN_IF_ERROR(CheckRange(loop.team(), 0, INT32_MAX, "measurement.team"));
  ASSIGN_OR_RETURN(out.state,
                   ModelEnum(loop.state(), MeasureState::kNeverEntered, "measurement.state"));
  ASSIGN_OR_RETURN(out.provenance,
                   ModelEnum(loop.provenance(), Provenance::kEstimated, "measurement.provenance"));
  out.reason = loop.reason();
  out.protocol = loop.protocol();
  out.instances = loop.instances();
  out.team = loop.team();
  ASSIGN_OR_RETURN(out.fidelity, FromProto(loop.fidelity(), loop.fidelity_basis()));
  RETURN_IF_ERROR(ReadTrips(loop.trips(), out.trips));
  RETURN_IF_ERROR(ReadLists(loop, out));
  ASSIGN_OR_RETURN(out.cost, FromProto(loop.cost()));
  ASSIGN_OR_RETURN(out.predicted, FromProto(loop.predicted()));
  return out;
}

v1::AuditEntry ToProto(const AuditEntry& entry) {
  v1::AuditEntry out;
  out.set_unix_ns(entry.unix_ns);
  out.set_profile_id(CleanText(entry.profile_id));
  out.set_requester(CleanText(entry.origin.requester));
  out.set_node(CleanText(entry.node));
  out.set_pid(entry.pid);
  out.set_loop_id(CleanText(entry.loop_id, kMaxAuditTextBytes));
  out.set_action(CleanText(entry.action, kMaxAuditTextBytes));
  out.set_address(entry.address);
  out.set_original_bytes(CleanText(entry.original_bytes, kMaxAuditTextBytes));
  out.set_written_bytes(CleanText(entry.written_bytes, kMaxAuditTextBytes));
  out.set_pause_ns(entry.pause_ns);
  out.set_outcome(CleanText(entry.outcome, kMaxAuditTextBytes));
  out.set_brought_by(CleanText(entry.origin.brought_by));
  return out;
}

absl::StatusOr<AuditEntry> FromProto(const v1::AuditEntry& entry) {
  RETURN_IF_ERROR(CheckRange(entry.unix_ns(), 0, INT64_MAX / 2, "audit.unix_ns"));
  RETURN_IF_ERROR(CheckRange(entry.pid(), 0, INT32_MAX, "audit.pid"));
  RETURN_IF_ERROR(CheckNs(entry.pause_ns(), "audit.pause_ns"));
  for (const std::string* text :
       {&entry.profile_id(), &entry.requester(), &entry.node(), &entry.loop_id(), &entry.action(),
        &entry.original_bytes(), &entry.written_bytes(), &entry.outcome(), &entry.brought_by()}) {
    RETURN_IF_ERROR(CheckText(*text, "audit"));
  }
  return AuditEntry{
      entry.unix_ns(),       entry.profile_id(), {entry.requester(), entry.brought_by()},
      entry.node(),          entry.pid(),        entry.loop_id(),
      entry.action(),        entry.address(),    entry.original_bytes(),
      entry.written_bytes(), entry.pause_ns(),   entry.outcome()};
}

}  // namespace perfd::wire
