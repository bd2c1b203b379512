// daemon/relay/call_headers.h - the headers of a connection's newest call.
//
// Limits   16 KiB in four frames: gRPC keeps them as a whole, and reads them anew with each frame.
// Errors   Add: kResourceExhausted, by these; kInvalidArgument for headers that begin no call.
// Threads  thread-compatible.
// Source   RFC 9113, sections 5.1.1, 6.2, 6.10.
#ifndef DAEMON_RELAY_CALL_HEADERS_H_
#define DAEMON_RELAY_CALL_HEADERS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/relay/frame_reader.h"

namespace perfd::daemon {

class CallHeaders {
 public:
  // `header` is of HEADERS or CONTINUATION.
  absl::Status Add(const FrameHeader& header) {
    constexpr size_t kMostBytes = 16 << 10;
    constexpr size_t kMostFrames = 4;
    if (header.type == FrameType::kHeaders) {
      if (header.stream % 2 == 0 || header.stream <= stream_)
        return absl::InvalidArgumentError("headers that begin no call");
      *this = CallHeaders();
      stream_ = header.stream;
    }
    bytes_ += header.length;
    if (bytes_ <= kMostBytes && ++frames_ <= kMostFrames) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(
        "headers of more than ", kMostBytes, " bytes, or in more than ", kMostFrames, " frames"));
  }
  // 0: there was none.
  uint32_t stream() const { return stream_; }

 private:
  uint32_t stream_ = 0;
  size_t bytes_ = 0;
  size_t frames_ = 0;
};

}  // namespace perfd::daemon

#endif  // DAEMON_RELAY_CALL_HEADERS_H_
