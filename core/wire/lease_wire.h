// core/wire/lease_wire.h - pause leases, clock readings and leased pauses to protobuf and back.
//
// Shape    as in wire.h: ToProto never fails; FromProto checks every range.
// Errors   kInvalidArgument, naming the field.
// Threads  thread-safe (pure).
#ifndef CORE_WIRE_LEASE_WIRE_H_
#define CORE_WIRE_LEASE_WIRE_H_

#include "absl/status/statusor.h"
#include "core/model/pause_lease.h"
#include "perfd/v1/lease.pb.h"

namespace perfd::wire {

v1::ClockReading ToProto(const ClockReading& reading);
absl::StatusOr<ClockReading> FromProto(const v1::ClockReading& reading);

v1::PauseLease ToProto(const PauseLease& lease);
absl::StatusOr<PauseLease> FromProto(const v1::PauseLease& lease);

v1::LeasedPause ToProto(const LeasedPause& pause);
absl::StatusOr<LeasedPause> FromProto(const v1::LeasedPause& pause);

}  // namespace perfd::wire

#endif  // CORE_WIRE_LEASE_WIRE_H_
