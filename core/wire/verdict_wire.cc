// Verdicts over the whole job, and the order that leads to them.
#include "core/base/status_macros.h"
#include "core/wire/check/check.h"
#include "core/wire/lease_wire.h"
#include "core/wire/variant_wire.h"

namespace perfd::wire {
namespace {

constexpr double kMaxRatio = 1e15;
constexpr double kMaxCycles = 1e18;

v1::VariantSummary ToProto(const VariantSummary& summary) {
  v1::VariantSummary out;
  out.set_variant(CleanText(summary.variant));
  out.set_base(CleanText(summary.base));
  *out.mutable_saturation() = wire::ToProto(summary.saturation);
  out.set_rank_min(summary.rank_min);
  out.set_rank_max(summary.rank_max);
  out.set_min_rank(CleanText(summary.min_rank));
  out.set_max_rank(CleanText(summary.max_rank));
  out.set_ranks(summary.ranks.measured);
  out.set_ranks_asked(summary.ranks.asked);
  out.set_valid_runs(summary.valid_runs);
  out.set_invalid_runs(summary.invalid_runs);
  out.set_shadows(summary.shadows);
  out.set_cycles(summary.cycles);
  out.set_changed(summary.edits.changed);
  out.set_pinned(summary.edits.pinned);
  out.set_accesses(summary.edits.accesses);
  out.set_kept(summary.edits.kept);
  out.set_unchained(summary.edits.unchained);
  out.set_cuts_memory_chain(summary.edits.cuts_memory_chain);
  return out;
}

absl::StatusOr<VariantSummary> FromProto(const v1::VariantSummary& s) {
  for (const std::string* text : {&s.variant(), &s.base(), &s.min_rank(), &s.max_rank()})
    RETURN_IF_ERROR(CheckText(*text, "verdict.variants"));
  RETURN_IF_ERROR(CheckNumber(s.rank_min(), 0, kMaxRatio, "verdict.variants.rank_min"));
  RETURN_IF_ERROR(CheckNumber(s.rank_max(), 0, kMaxRatio, "verdict.variants.rank_max"));
  RETURN_IF_ERROR(CheckNumber(s.cycles(), 0, kMaxCycles, "verdict.variants.cycles"));
  RETURN_IF_ERROR(CheckRange(s.changed(), 0, INT32_MAX, "verdict.variants.changed"));
  RETURN_IF_ERROR(CheckRange(s.kept(), 0, INT32_MAX, "verdict.variants.kept"));
  RETURN_IF_ERROR(CheckRange(s.accesses(), 0, INT32_MAX, "verdict.variants.accesses"));
  RETURN_IF_ERROR(CheckRange(s.pinned(), 0, s.accesses(), "verdict.variants.pinned"));
  VariantSummary out;
  out.variant = s.variant();
  out.base = s.base();
  ASSIGN_OR_RETURN(out.saturation, wire::FromProto(s.saturation()));
  out.rank_min = s.rank_min();
  out.rank_max = s.rank_max();
  out.min_rank = s.min_rank();
  out.max_rank = s.max_rank();
  out.ranks = {s.ranks(), s.ranks_asked()};
  out.valid_runs = s.valid_runs();
  out.invalid_runs = s.invalid_runs();
  out.shadows = s.shadows();
  out.cycles = s.cycles();
  out.edits.changed = s.changed();
  out.edits.pinned = s.pinned();
  out.edits.accesses = s.accesses();
  out.edits.kept = s.kept();
  out.edits.unchained = s.unchained();
  out.edits.cuts_memory_chain = s.cuts_memory_chain();
  return out;
}

// The first readers refuse a report with a reason above this.
constexpr Silence kFirstReaders = Silence::kRanksDiffer;

template <typename Message>
void SetSilence(Silence why, Message& out) {
  if (why <= kFirstReaders)
    out.set_silence(WireEnum<v1::Silence>(why));
  else
    out.set_later_silence(WireEnum<v1::Silence>(why));
}

// A perfd of before the reasons had numbers sends none; of a later one some may be unknown.
template <typename Message>
absl::StatusOr<Silence> ReadSilence(const Message& message, const char* field) {
  const v1::Silence later = message.later_silence();
  const v1::Silence silence = later != v1::SILENCE_UNSPECIFIED ? later : message.silence();
  if (silence == v1::SILENCE_UNSPECIFIED || static_cast<int>(silence) > kSilenceCount)
    return Silence::kNone;
  return ModelEnum(silence, Silence::kMemoryChain, field);
}

absl::StatusOr<ClassVerdict> FromProto(const v1::ClassVerdict& verdict) {
  ASSIGN_OR_RETURN(const Bound bound,
                   ModelEnum(verdict.bound(), Bound::kWithinL1, "verdict.trip_verdicts.bound"));
  ASSIGN_OR_RETURN(const Silence why, ReadSilence(verdict, "verdict.trip_verdicts.silence"));
  return ClassVerdict{bound, verdict.sure(), why};
}

void FillLists(const LoopVerdict& loop, v1::LoopVerdict& out) {
  for (const VariantSummary& summary : loop.variants) *out.add_variants() = ToProto(summary);
  for (const Gain& gain : loop.gains) {
    v1::Gain* to = out.add_gains();
    to->set_variant(CleanText(gain.variant));
    to->set_name(CleanText(gain.name));
    *to->mutable_of_job() = wire::ToProto(gain.of_job);
    to->set_ranks(gain.ranks.measured);
    to->set_ranks_asked(gain.ranks.asked);
  }
  for (const std::string& remark : loop.remarks) out.add_remarks(CleanText(remark));
  for (const TripClass& trips : loop.trips.classes) *out.add_trip_classes() = wire::ToProto(trips);
  for (const ClassVerdict& verdict : loop.trips.verdicts) {
    v1::ClassVerdict* to = out.add_trip_verdicts();
    to->set_bound(WireEnum<v1::Bound>(verdict.bound));
    to->set_sure(verdict.sure);
    SetSilence(verdict.why, *to);
  }
  for (const Refusal& refusal : loop.refusals) *out.add_refusals() = wire::ToProto(refusal);
  for (const std::string& variant : loop.open) out.add_open(CleanText(variant));
  for (const VariantListing& listing : loop.listings) *out.add_listings() = wire::ToProto(listing);
  for (const RankVerdict& rank : loop.ranks) {
    v1::RankVerdict* to = out.add_ranks();
    to->set_bound(WireEnum<v1::Bound>(rank.bound));
    to->set_outlier(CleanText(rank.outlier));
    SetSilence(rank.why, *to);
    *to->mutable_measurement() = wire::ToProto(rank.measurement);
  }
}

absl::Status CheckCounts(const v1::LoopVerdict& loop) {
  RETURN_IF_ERROR(CheckCount(loop.variants_size(), kMaxVariants, "verdict.variants"));
  RETURN_IF_ERROR(CheckCount(loop.gains_size(), kMaxVariants, "verdict.gains"));
  RETURN_IF_ERROR(CheckCount(loop.remarks_size(), kMaxRefusals, "verdict.remarks"));
  RETURN_IF_ERROR(CheckCount(loop.refusals_size(), kMaxReportRanks, "verdict.refusals"));
  RETURN_IF_ERROR(CheckCount(loop.open_size(), kMaxVariants, "verdict.open"));
  RETURN_IF_ERROR(CheckCount(loop.listings_size(), kMaxVariants, "verdict.listings"));
  RETURN_IF_ERROR(CheckCount(loop.trip_classes_size(), kMaxTripClasses, "verdict.trip_classes"));
  RETURN_IF_ERROR(CheckCount(loop.trip_verdicts_size(), kMaxTripClasses, "verdict.trip_verdicts"));
  return CheckCount(loop.ranks_size(), kMaxReportRanks, "verdict.ranks");
}

absl::Status ReadTexts(const v1::LoopVerdict& loop, LoopVerdict& out) {
  for (const std::string& remark : loop.remarks()) {
    RETURN_IF_ERROR(CheckText(remark, "verdict.remarks"));
    out.remarks.push_back(remark);
  }
  for (const std::string& variant : loop.open()) {
    RETURN_IF_ERROR(CheckText(variant, "verdict.open"));
    out.open.push_back(variant);
  }
  for (const v1::Gain& gain : loop.gains()) {
    RETURN_IF_ERROR(CheckText(gain.variant(), "verdict.gains.variant"));
    RETURN_IF_ERROR(CheckText(gain.name(), "verdict.gains.name"));
    ASSIGN_OR_RETURN(const Ratio of_job, wire::FromProto(gain.of_job()));
    out.gains.push_back({gain.variant(), gain.name(), of_job, {gain.ranks(), gain.ranks_asked()}});
  }
  return absl::OkStatus();
}

absl::Status ReadLists(const v1::LoopVerdict& loop, LoopVerdict& out) {
  RETURN_IF_ERROR(CheckCounts(loop));
  RETURN_IF_ERROR(ReadTexts(loop, out));
  for (const v1::VariantSummary& summary : loop.variants()) {
    ASSIGN_OR_RETURN(VariantSummary read, FromProto(summary));
    out.variants.push_back(std::move(read));
  }
  for (const v1::Refusal& refusal : loop.refusals()) {
    ASSIGN_OR_RETURN(Refusal read, wire::FromProto(refusal));
    out.refusals.push_back(std::move(read));
  }
  for (const v1::VariantListing& listing : loop.listings()) {
    ASSIGN_OR_RETURN(VariantListing read, wire::FromProto(listing));
    out.listings.push_back(std::move(read));
  }
  for (const v1::TripClass& trips : loop.trip_classes()) {
    ASSIGN_OR_RETURN(TripClass read, wire::FromProto(trips));
    out.trips.classes.push_back(std::move(read));
  }
  for (const v1::ClassVerdict& verdict : loop.trip_verdicts()) {
    ASSIGN_OR_RETURN(const ClassVerdict read, FromProto(verdict));
    out.trips.verdicts.push_back(read);
  }
  for (const v1::RankVerdict& rank : loop.ranks()) {
    RETURN_IF_ERROR(CheckText(rank.outlier(), "verdict.ranks.outlier"));
    ASSIGN_OR_RETURN(const Bound bound,
                     ModelEnum(rank.bound(), Bound::kWithinL1, "verdict.ranks.bound"));
    ASSIGN_OR_RETURN(LoopMeasurement read, wire::FromProto(rank.measurement()));
    ASSIGN_OR_RETURN(const Silence why, ReadSilence(rank, "verdict.ranks.silence"));
    out.ranks.push_back({bound, rank.outlier(), why, std::move(read)});
  }
  return absl::OkStatus();
}

absl::Status ReadVerdict(const v1::LoopVerdict& loop, LoopVerdict& out) {
  for (const std::string* text : {&loop.loop_id(), &loop.location_key(), &loop.agreement(),
                                  &loop.slowest_rank(), &loop.protocol(), &loop.trip_rank()}) {
    RETURN_IF_ERROR(CheckText(*text, "verdict"));
  }
  RETURN_IF_ERROR(CheckRatio(loop.share(), "verdict.share"));
  RETURN_IF_ERROR(CheckRatio(loop.slowest_share(), "verdict.slowest_share"));
  ASSIGN_OR_RETURN(out.state,
                   ModelEnum(loop.state(), MeasureState::kNeverEntered, "verdict.state"));
  ASSIGN_OR_RETURN(out.bound, ModelEnum(loop.bound(), Bound::kWithinL1, "verdict.bound"));
  ASSIGN_OR_RETURN(out.level, ModelEnum(loop.level(), DataLevel::kBeyondL2, "verdict.level"));
  out.loop_id = loop.loop_id();
  out.location_key = loop.location_key();
  out.sure = loop.sure();
  ASSIGN_OR_RETURN(out.why, ReadSilence(loop, "verdict.silence"));
  out.trips.rank = loop.trip_rank();
  out.agreement = loop.agreement();
  out.share = loop.share();
  out.slowest_share = loop.slowest_share();
  out.slowest_rank = loop.slowest_rank();
  out.ranks_measured = loop.ranks_measured();
  out.ranks_total = loop.ranks_total();
  out.protocol = loop.protocol();
  out.ranks_left_out = loop.ranks_left_out();
  return absl::OkStatus();
}

}  // namespace

v1::LoopVerdict ToProto(const LoopVerdict& loop) {
  v1::LoopVerdict out;
  out.set_loop_id(CleanText(loop.loop_id));
  out.set_location_key(CleanText(loop.location_key));
  out.set_state(WireEnum<v1::MeasureState>(loop.state));
  out.set_bound(WireEnum<v1::Bound>(loop.bound));
  out.set_sure(loop.sure);
  SetSilence(loop.why, out);
  out.set_trip_rank(CleanText(loop.trips.rank));
  out.set_level(WireEnum<v1::DataLevel>(loop.level));
  out.set_agreement(CleanText(loop.agreement));
  out.set_share(loop.share);
  out.set_slowest_share(loop.slowest_share);
  out.set_slowest_rank(CleanText(loop.slowest_rank));
  out.set_ranks_measured(loop.ranks_measured);
  out.set_ranks_total(loop.ranks_total);
  FillLists(loop, out);
  *out.mutable_fidelity() = ToProto(loop.fidelity.ratio());
  *out.mutable_fidelity_basis() = BasisToProto(loop.fidelity);
  out.set_protocol(CleanText(loop.protocol));
  *out.mutable_cost() = ToProto(loop.cost);
  out.set_ranks_left_out(loop.ranks_left_out);
  if (loop.predicted != PredictedCost{}) *out.mutable_predicted() = ToProto(loop.predicted);
  return out;
}

absl::StatusOr<LoopVerdict> FromProto(const v1::LoopVerdict& loop) {
  LoopVerdict out;
  RETURN_IF_ERROR(ReadVerdict(loop, out));
  RETURN_IF_ERROR(ReadLists(loop, out));
  ASSIGN_OR_RETURN(out.fidelity, FromProto(loop.fidelity(), loop.fidelity_basis()));
  ASSIGN_OR_RETURN(out.cost, FromProto(loop.cost()));
  ASSIGN_OR_RETURN(out.predicted, FromProto(loop.predicted()));
  return out;
}

v1::InjectionTotal ToProto(const InjectionTotal& total) {
  v1::InjectionTotal out;
  *out.mutable_sum() = ToProto(total.sum);
  out.set_added_wall_ns(total.added_wall_ns);
  out.set_added_ratio(total.added_ratio);
  out.set_shared_ns(total.shared_ns);
  out.set_pauses_lost(total.pauses_lost);
  return out;
}

absl::StatusOr<InjectionTotal> FromProto(const v1::InjectionTotal& total) {
  RETURN_IF_ERROR(CheckRange(total.added_wall_ns(), 0, INT64_MAX, "injection.added_wall_ns"));
  RETURN_IF_ERROR(CheckNumber(total.added_ratio(), 0, kMaxRatio, "injection.added_ratio"));
  ASSIGN_OR_RETURN(const InjectionCost sum, FromProto(total.sum()));
  RETURN_IF_ERROR(CheckRange(total.shared_ns(), 0, INT64_MAX, "injection.shared_ns"));
  return InjectionTotal{sum, total.added_wall_ns(), total.added_ratio(), total.shared_ns(),
                        total.pauses_lost()};
}

v1::MeasureCommand ToProto(const MeasureOrder& order) {
  v1::MeasureCommand out;
  out.set_profile_id(CleanText(order.profile_id));
  for (const MeasureLoop& loop : order.loops) {
    v1::MeasureLoop* to = out.add_loops();
    to->set_loop_id(CleanText(loop.loop_id));
    to->set_location_key(CleanText(loop.location_key));
    to->set_module_id(CleanText(loop.module_id));
    to->set_module_path(CleanText(loop.module_path));
    to->set_function_low(loop.function_low);
    to->set_header(loop.header);
  }
  for (const std::string& variant : order.variants) out.add_variants(CleanText(variant));
  out.set_repetitions(order.repetitions);
  out.set_overhead_ratio(order.budget.overhead_ratio);
  out.set_stop_ns(order.budget.stop_ns);
  out.set_shadow_ns(order.budget.shadow_ns);
  out.set_dry_run(order.dry_run);
  out.set_recovery(order.recovery);
  out.set_revision(order.revision);
  if (order.lease.has_value()) *out.mutable_lease() = ToProto(*order.lease);
  return out;
}

absl::StatusOr<MeasureOrder> FromProto(const v1::MeasureCommand& command) {
  RETURN_IF_ERROR(CheckText(command.profile_id(), "measure.profile_id"));
  if (command.profile_id().empty()) return absl::InvalidArgumentError("measure.profile_id: empty");
  RETURN_IF_ERROR(CheckCount(command.loops_size(), kMaxMeasureLoops, "measure.loops"));
  RETURN_IF_ERROR(CheckCount(command.variants_size(), kMaxVariants, "measure.variants"));
  RETURN_IF_ERROR(CheckRange(command.repetitions(), 1, 1000, "measure.repetitions"));
  RETURN_IF_ERROR(CheckNumber(command.overhead_ratio(), 0, 0.5, "measure.overhead_ratio"));
  RETURN_IF_ERROR(CheckRange(command.stop_ns(), 0, INT64_MAX / 4, "measure.stop_ns"));
  RETURN_IF_ERROR(CheckRange(command.shadow_ns(), 0, INT64_MAX / 4, "measure.shadow_ns"));
  MeasureOrder out;
  out.profile_id = command.profile_id();
  for (const v1::MeasureLoop& loop : command.loops()) {
    for (const std::string* text :
         {&loop.loop_id(), &loop.location_key(), &loop.module_id(), &loop.module_path()}) {
      RETURN_IF_ERROR(CheckText(*text, "measure.loops"));
    }
    out.loops.push_back({loop.loop_id(), loop.location_key(), loop.module_id(), loop.module_path(),
                         loop.function_low(), loop.header()});
  }
  for (const std::string& variant : command.variants()) {
    RETURN_IF_ERROR(CheckText(variant, "measure.variants"));
    out.variants.push_back(variant);
  }
  out.repetitions = command.repetitions();
  out.budget = {command.overhead_ratio(), command.stop_ns(), command.shadow_ns()};
  out.dry_run = command.dry_run();
  out.recovery = command.recovery();
  out.revision = command.revision();
  if (command.has_lease()) {
    ASSIGN_OR_RETURN(out.lease, FromProto(command.lease()));
  }
  return out;
}

}  // namespace perfd::wire
