// core/wire/hook_wire.h - jobs of schedulers and decisions about them, to protobuf messages and back.
//
// Errors   kInvalidArgument, naming the field.
// Threads  thread-safe (pure).
#ifndef CORE_WIRE_HOOK_WIRE_H_
#define CORE_WIRE_HOOK_WIRE_H_

#include "absl/status/statusor.h"
#include "core/model/hook.h"
#include "perfd/v1/hook.pb.h"

namespace perfd::wire {

v1::HookJob ToProto(const HookJob& job);
absl::StatusOr<HookJob> FromProto(const v1::HookJob& job);

v1::HookResponse ToProto(const HookAnswer& answer);
absl::StatusOr<HookAnswer> FromProto(const v1::HookResponse& answer);

v1::HookListResponse ToProto(const HookOverview& overview);
absl::StatusOr<HookOverview> FromProto(const v1::HookListResponse& overview);

}  // namespace perfd::wire

#endif  // CORE_WIRE_HOOK_WIRE_H_
