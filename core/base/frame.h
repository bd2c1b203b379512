// core/base/frame.h - whole messages over a stream socket: a length, then that many bytes.
//
// Shape    length: 4 bytes, little-endian, at most kMaxFrameBytes.
// Units    deadlines in ns of CLOCK_MONOTONIC; kNoDeadline waits for the peer's death at the longest.
// Errors   kDeadlineExceeded; kUnavailable (the peer is gone); kResourceExhausted (a length over the limit).
//          Never a signal (MSG_NOSIGNAL).
// Threads  thread-bound per socket.
#ifndef CORE_BASE_FRAME_H_
#define CORE_BASE_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perfd {

inline constexpr size_t kMaxFrameBytes = size_t{64} << 20;
inline constexpr int64_t kNoDeadline = INT64_MAX;

absl::Status SendFrame(int socket, absl::string_view message, int64_t deadline_ns);
absl::StatusOr<std::string> ReceiveFrame(int socket, int64_t deadline_ns);

}  // namespace perfd

#endif  // CORE_BASE_FRAME_H_
