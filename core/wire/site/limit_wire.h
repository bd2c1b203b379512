// core/wire/site/limit_wire.h - limits and their use to protobuf messages and back.
//
// Errors   kInvalidArgument, naming the field.
// Threads  thread-safe (pure).
#ifndef CORE_WIRE_SITE_LIMIT_WIRE_H_
#define CORE_WIRE_SITE_LIMIT_WIRE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/model/site/limit_use.h"
#include "perfd/v1/limits.pb.h"

namespace perfd::wire {

v1::ListLimitsResponse ToProto(const std::vector<LimitUse>& limits);
absl::StatusOr<std::vector<LimitUse>> FromProto(const v1::ListLimitsResponse& response);

}  // namespace perfd::wire

#endif  // CORE_WIRE_SITE_LIMIT_WIRE_H_
