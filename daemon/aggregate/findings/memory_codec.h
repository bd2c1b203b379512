// daemon/aggregate/findings/memory_codec.h - accesses to memory of a stored aggregate as a message, and back.
//
// Shape    part of aggregate_codec.h.
// Errors   kInvalidArgument for what is none; places are below `place_count`.
// Threads  thread-safe (pure).
#ifndef DAEMON_AGGREGATE_FINDINGS_MEMORY_CODEC_H_
#define DAEMON_AGGREGATE_FINDINGS_MEMORY_CODEC_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "daemon/aggregate/findings/memory_table.h"
#include "perfd/v1/memory.pb.h"

namespace perfd::daemon {

v1::AggregateMemory ToProto(const MemoryState& state);
absl::StatusOr<MemoryState> FromProto(const v1::AggregateMemory& from, size_t place_count);

}  // namespace perfd::daemon

#endif  // DAEMON_AGGREGATE_FINDINGS_MEMORY_CODEC_H_
