// daemon/aggregate/findings/measured_codec.h - the measured loops of an aggregate as a message, and back.
//
// Shape    part of aggregate_codec.h.
// Errors   kDataLoss, kInvalidArgument for what is no measurement.
// Threads  thread-safe (pure).
#ifndef DAEMON_AGGREGATE_FINDINGS_MEASURED_CODEC_H_
#define DAEMON_AGGREGATE_FINDINGS_MEASURED_CODEC_H_

#include "absl/status/statusor.h"
#include "daemon/aggregate/findings/measured_loops.h"
#include "perfd/v1/aggregate.pb.h"

namespace perfd::daemon {

v1::AggregateMeasured ToProto(const MeasuredState& state);
absl::StatusOr<MeasuredState> FromProto(const v1::AggregateMeasured& from);

}  // namespace perfd::daemon

#endif  // DAEMON_AGGREGATE_FINDINGS_MEASURED_CODEC_H_
