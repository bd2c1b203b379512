// daemon/relay/frame_reader.h - where in the frames of HTTP/2 one direction of a connection is.
//
// Shape    Next says what its bytes begin with: a part of a frame's head, or of its payload.
// Bounds   keeps nine bytes; what the payload says is not its business.
// Threads  thread-compatible.
// Source   RFC 9113, section 4.1.
#ifndef DAEMON_RELAY_FRAME_READER_H_
#define DAEMON_RELAY_FRAME_READER_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace perfd::daemon {

// RFC 9113, section 6.
enum class FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kResetStream = 3,
  kPing = 6,
  kGoAway = 7,
  kContinuation = 9,
};
inline constexpr uint8_t kEndStream = 0x1;
inline constexpr uint8_t kAck = 0x1;
inline constexpr uint8_t kEndHeaders = 0x4;
inline constexpr size_t kFrameHeadBytes = 9;

struct FrameHeader {
  uint32_t length = 0;  // of the payload; below 2^24
  FrameType type{};     // may be one without a name
  uint8_t flags = 0;
  uint32_t stream = 0;
};

class FrameReader {
 public:
  struct Piece {
    size_t size = 0;         // of the bytes; 0: there were none
    bool ends_head = false;  // head() is this frame's from now on
  };

  // `bytes` follow those of the pieces before.
  Piece Next(absl::string_view bytes);
  // Of the frame that is under way, or was the last one.
  const FrameHeader& head() const { return head_; }
  // Of its payload, yet to come.
  size_t payload_left() const { return payload_left_; }
  bool between_frames() const { return payload_left_ == 0 && head_size_ == 0; }

 private:
  std::array<uint8_t, kFrameHeadBytes> head_bytes_{};
  size_t head_size_ = 0;
  size_t payload_left_ = 0;
  FrameHeader head_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_RELAY_FRAME_READER_H_
