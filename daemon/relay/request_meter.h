// daemon/relay/request_meter.h - how much of one connection's requests may come in.
//
// Shape    Pass says how many of the client's bytes may go on to gRPC. Where a call begins it stops, until BeginCall; before a message over
//          kFreeBytes it stops, and needed() says how much room it needs, until Admit brings the room for it. Answered is told what gRPC
//          says, so that calls that have ended give back what they hold.
// Room     A call keeps the room of its largest message until it has ended as both sides know: gRPC keeps a message that nobody reads, and
//          after its RST_STREAM the call may live on.
// Limits   messages by MessageSizes, headers of 16 KiB, kMostCalls under way, frames by FrameBudget. gRPC's own limit comes into force only when it has a
//          message as a whole (chttp2 frame_data.cc of 1.51), so that one that never ends would have none.
// Errors   status(), for good: kResourceExhausted (a message over the limit, with its call; too many calls), kInvalidArgument
//          (what clients of gRPC do not send: another preface, larger frames or headers than gRPC announces, headers that begin
//          no call, flags of DATA; and compressed messages, of which 16 MiB may be 16 GiB).
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
#include "daemon/relay/answer_reader.h"
#include "daemon/relay/call_headers.h"
#include "daemon/relay/frame_budget.h"
#include "daemon/relay/frame_reader.h"

namespace perfd::daemon {

// Bytes that a message may have.
struct MessageSizes {
  uint32_t most = 0;
  uint32_t most_question = 0;  // of a call that has had no answer yet: all questions
};

// What has to wait.
struct MeterWait {
  bool call = false;      // the newest one
  uint32_t needed = 0;    // bytes for a message; 0: none waits
  uint64_t messages = 0;  // that have had to, so far
};

class RequestMeter {
 public:
  // Questions are smaller: who has no room left can still ask them.
  static constexpr uint32_t kFreeBytes = 8 << 10;
  static constexpr size_t kMostCalls =
      128;  // as gRPC announces, whether the client has heard of it or not

  explicit RequestMeter(const MessageSizes& sizes) : sizes_(sizes) {}

  // So many of `bytes`, which follow those that have passed, may go on. Fewer: a call or a message waits, or an error.
  size_t Pass(absl::string_view bytes);
  bool call_waits() const { return wait_.call; }
  // It may begin. `place` is given back when it has ended.
  void BeginCall(Share place);
  // How much more room the message needs that waits; 0: none does.
  uint32_t needed() const { return wait_.needed; }
  void Admit(Share room);
  void Answered(absl::string_view bytes);

  FrameBudget& frames() { return frames_; }

  const absl::Status& status() const { return status_; }
  // The call that status() or needed() is about; 0: none.
  uint32_t call() const { return call_; }
  // How many messages have had to wait: which one does.
  uint64_t waits() const { return wait_.messages; }
  uint32_t newest_call() const { return newest_.stream(); }
  // Whether it has had the headers of its answer.
  bool call_is_answered() const;
  // Whether a frame of somebody else's may come now, between what gRPC says.
  bool answers_may_be_cut() const { return answers_.may_be_cut(); }

 private:
  static constexpr size_t kPrefixBytes = 5;

  struct Call {
    std::array<uint8_t, kPrefixBytes> prefix{};
    size_t prefix_size = 0;
    uint32_t left = 0;  // of its message
    bool answered = false;
    Share place{};
    Share room{};
    uint32_t room_bytes = 0;
  };

  size_t PassPreface(absl::string_view bytes);
  // Of the connection, not of one call.
  void Fail(absl::Status status);
  void BeginFrame();
  void EndFrame();
  size_t PassData(uint32_t stream, absl::string_view data);
  void BeginMessage(uint32_t stream, Call& call);
  void EndCall(uint32_t stream);

  const MessageSizes sizes_;
  size_t preface_size_ = 0;
  FrameReader requests_;
  AnswerReader answers_;
  CallHeaders newest_;
  std::map<uint32_t, Call> calls_;  // by stream
  FrameBudget frames_;
  MeterWait wait_;
  uint32_t call_ = 0;
  absl::Status status_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_RELAY_REQUEST_METER_H_
