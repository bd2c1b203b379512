// core/wire/variant_wire.h - measurements by variants, verdicts, orders and the audit log to protobuf and back.
//
// Shape    as in wire.h: ToProto never fails; FromProto checks every enum, range and count.
// Errors   kInvalidArgument, naming the field.
// Threads  thread-safe (pure).
#ifndef CORE_WIRE_VARIANT_WIRE_H_
#define CORE_WIRE_VARIANT_WIRE_H_

#include "absl/status/statusor.h"
#include "core/model/loop_measurement.h"
#include "core/model/loop_verdict.h"
#include "core/model/measure_order.h"
#include "perfd/v1/agent.pb.h"
#include "perfd/v1/variant.pb.h"
#include "perfd/v1/verdict.pb.h"

namespace perfd::wire {

v1::Ratio ToProto(const Ratio& ratio);
absl::StatusOr<Ratio> FromProto(const v1::Ratio& ratio);

v1::Refusal ToProto(const Refusal& refusal);
absl::StatusOr<Refusal> FromProto(const v1::Refusal& refusal);

v1::VariantListing ToProto(const VariantListing& listing);
absl::StatusOr<VariantListing> FromProto(const v1::VariantListing& listing);

v1::InjectionCost ToProto(const InjectionCost& cost);
absl::StatusOr<InjectionCost> FromProto(const v1::InjectionCost& cost);

v1::PredictedCost ToProto(const PredictedCost& cost);
absl::StatusOr<PredictedCost> FromProto(const v1::PredictedCost& cost);

v1::TripClass ToProto(const TripClass& trips);
absl::StatusOr<TripClass> FromProto(const v1::TripClass& trips);

// The ratio is a message of its own, of before the basis was told.
v1::FidelityBasis BasisToProto(const Fidelity& fidelity);
absl::StatusOr<Fidelity> FromProto(const v1::Ratio& ratio, const v1::FidelityBasis& basis);

v1::LoopMeasurement ToProto(const LoopMeasurement& loop);
absl::StatusOr<LoopMeasurement> FromProto(const v1::LoopMeasurement& loop);

v1::AuditEntry ToProto(const AuditEntry& entry);
absl::StatusOr<AuditEntry> FromProto(const v1::AuditEntry& entry);

v1::LoopVerdict ToProto(const LoopVerdict& loop);
absl::StatusOr<LoopVerdict> FromProto(const v1::LoopVerdict& loop);

v1::InjectionTotal ToProto(const InjectionTotal& total);
absl::StatusOr<InjectionTotal> FromProto(const v1::InjectionTotal& total);

v1::MeasureCommand ToProto(const MeasureOrder& order);
absl::StatusOr<MeasureOrder> FromProto(const v1::MeasureCommand& command);

}  // namespace perfd::wire

#endif  // CORE_WIRE_VARIANT_WIRE_H_
