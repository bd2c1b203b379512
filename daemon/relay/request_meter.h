// daemon/relay/request_meter.h - how much of one connection's requests may come in.
//
// Shape    Pass says how many of the client's bytes may go on to gRPC. Where a call begins it stops, until BeginCall; before a message over
//          kFreeBytes it stops, and needed() says how large it is, until Admit brings the room for it. Answered is told what gRPC
//          says, so that calls that have ended give their room back.
// Limits   a message of at most `most_bytes`, kMostCalls under way. gRPC's own limit comes into force only when it has a
//          message as a whole (chttp2 frame_data.cc of 1.51), so that one that never ends would have none.
// Errors   status(), for good: kResourceExhausted (a message over the limit, with its call; too many calls), kInvalidArgument
//          (what gRPC does not take either: another preface, padded DATA; and compressed messages, of which 16 MiB may be 16 GiB).
// Threads  thread-compatible.
// Source   RFC 9113, sections 3.4, 4.1, 5.1.1, 6; gRPC's PROTOCOL-HTTP2.md, Length-Prefixed-Message.
#ifndef DAEMON_RELAY_REQUEST_METER_H_
#define DAEMON_RELAY_REQUEST_METER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "daemon/limits/limits.h"
#include "daemon/relay/frame_reader.h"

namespace perfd::daemon {

class RequestMeter {
 public:
  // Questions are smaller: who has no room left can still ask them.
  static constexpr uint32_t kFreeBytes = 8 << 10;
  static constexpr size_t kMostCalls = 256;  // gRPC takes 128

  explicit RequestMeter(uint32_t most_bytes) : most_bytes_(most_bytes) {}

  // So many of `bytes`, which follow those that have passed, may go on. Fewer: a call or a message waits, or an error.
  size_t Pass(absl::string_view bytes);
  bool call_waits() const { return call_waits_; }
  void BeginCall() { call_waits_ = false; }
  // The size of the message that waits; 0: none.
  uint32_t needed() const { return needed_; }
  // It may come. `room` is given back when the next one of its call begins, or when the call has ended.
  void Admit(Share room);
  void Answered(absl::string_view bytes);

  const absl::Status& status() const { return status_; }
  // The call that status() or needed() is about; 0: none.
  uint32_t call() const { return call_; }
  // Whether it has had the headers of its answer.
  bool call_is_answered() const;
  // Whether a frame of somebody else's may come now, between what gRPC says. Its SETTINGS are the first (RFC 9113, section 3.4).
  bool answers_may_be_cut() const {
    return has_settings_ && answers_.between_frames() && !in_headers_;
  }

 private:
  static constexpr size_t kPrefixBytes = 5;

  struct Call {
    std::array<uint8_t, kPrefixBytes> prefix{};
    size_t prefix_size = 0;
    uint32_t left = 0;  // of its message
    bool answered = false;
    Share room{};
  };

  size_t PassPreface(absl::string_view bytes);
  // Of the connection, not of one call.
  void Fail(absl::Status status);
  void BeginFrame();
  size_t PassData(uint32_t stream, absl::string_view data);
  void BeginMessage(uint32_t stream, Call& call);
  void EndCall(uint32_t stream);

  const uint32_t most_bytes_;
  size_t preface_size_ = 0;
  FrameReader requests_;
  FrameReader answers_;
  bool has_settings_ = false;
  bool in_headers_ = false;  // of an answer; more of them must follow
  uint32_t newest_ = 0;
  std::map<uint32_t, Call> calls_;  // by stream
  bool call_waits_ = false;
  uint32_t needed_ = 0;
  uint32_t call_ = 0;
  absl::Status status_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_RELAY_REQUEST_METER_H_
