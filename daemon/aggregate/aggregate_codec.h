// daemon/aggregate/aggregate_codec.h - an aggregate as bytes for the store, and back.
//
// Shape    canonical: equal aggregates give equal bytes.
// Errors   ParseAggregate: kDataLoss for bytes that are no aggregate of a version up to ours; older ones are converted.
// Threads  thread-safe (pure).
#ifndef DAEMON_AGGREGATE_AGGREGATE_CODEC_H_
#define DAEMON_AGGREGATE_AGGREGATE_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/aggregate/profile_aggregate.h"

namespace perfd::daemon {

std::string SerializeAggregate(const ProfileAggregate& aggregate);
absl::StatusOr<ProfileAggregate> ParseAggregate(absl::string_view bytes,
                                                AggregateLimits limits = {});

}  // namespace perfd::daemon

#endif  // DAEMON_AGGREGATE_AGGREGATE_CODEC_H_
