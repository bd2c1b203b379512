// daemon/relay/answer_reader.h - what gRPC says about the calls of one connection.
//
// Shape    Next says what its bytes begin with.
// Threads  thread-compatible.
// Source   RFC 9113, sections 3.4, 4.3, 5.1.
#ifndef DAEMON_RELAY_ANSWER_READER_H_
#define DAEMON_RELAY_ANSWER_READER_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "daemon/relay/frame_reader.h"

namespace perfd::daemon {

class AnswerReader {
 public:
  struct Piece {
    size_t size = 0;  // of the bytes
    uint32_t stream = 0;
    bool headers = false;  // that stream has headers now
    bool last = false;     // and is at its end
    size_t data = 0;       // bytes of DATA in it
  };

  Piece Next(absl::string_view bytes) {
    const bool data = frames_.payload_left() > 0 && frames_.head().type == FrameType::kData;
    const FrameReader::Piece piece = frames_.Next(bytes);
    if (!piece.ends_head) return {.size = piece.size, .data = data ? piece.size : 0};
    const FrameHeader& header = frames_.head();
    const bool headers = header.type == FrameType::kHeaders;
    has_settings_ = true;
    if (headers || header.type == FrameType::kContinuation)
      in_headers_ = (header.flags & kEndHeaders) == 0;
    const bool may_end = headers || header.type == FrameType::kData;
    return {.size = piece.size,
            .stream = header.stream,
            .headers = headers,
            .last = may_end && (header.flags & kEndStream) != 0};
  }
  // Whether a frame of somebody else's may come now. SETTINGS are the first.
  bool may_be_cut() const { return has_settings_ && frames_.between_frames() && !in_headers_; }

 private:
  FrameReader frames_;
  bool has_settings_ = false;
  bool in_headers_ = false;  // more of them must follow
};

}  // namespace perfd::daemon

#endif  // DAEMON_RELAY_ANSWER_READER_H_
