// core/wire/history_wire.h - the history of a program to protobuf messages and back.
//
// Shape    as in wire.h.
// Errors   kInvalidArgument, naming the field.
// Threads  thread-safe (pure).
#ifndef CORE_WIRE_HISTORY_WIRE_H_
#define CORE_WIRE_HISTORY_WIRE_H_

#include "absl/status/statusor.h"
#include "core/model/history.h"
#include "perfd/v1/history.pb.h"

namespace perfd::wire {

v1::HistoryResponse ToProto(const ProgramHistory& history);
absl::StatusOr<ProgramHistory> FromProto(const v1::HistoryResponse& response);

}  // namespace perfd::wire

#endif  // CORE_WIRE_HISTORY_WIRE_H_
