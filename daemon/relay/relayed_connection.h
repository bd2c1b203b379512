// daemon/relay/relayed_connection.h - one client's connection on its way to gRPC.
//
// Shape    Move carries over what has come, each way, at most kTurnBytes; nothing more is read of a side until the other has taken that.
// Limits   what Admission lets in. What is to be said last is said by Ending.
// Errors   a client that is refused is told why, where there is a call to say it in, and cut off.
// Threads  thread-compatible.
#ifndef DAEMON_RELAY_RELAYED_CONNECTION_H_
#define DAEMON_RELAY_RELAYED_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "core/base/clock.h"
#include "core/base/unique_fd.h"
#include "daemon/relay/admission.h"
#include "daemon/relay/ending.h"
#include "daemon/relay/request_meter.h"

namespace perfd::daemon {

class RelayedConnection {
 public:
  static constexpr size_t kTurnBytes = 64 << 10;

  enum class Outcome {
    kIdle,   // until something comes, or can be sent
    kAgain,  // there may be more to do
    kTimed,  // as kIdle, but its time may be over before
    kOver,   // both ends are closed when it is destroyed
  };

  // Both without O_NONBLOCK being needed. `shared` outlives it.
  RelayedConnection(UniqueFd client, UniqueFd server, uint32_t uid, RelayShared& shared)
      : client_(std::move(client)),
        server_(std::move(server)),
        admission_(uid, shared),
        meter_(shared.rules.sizes) {}
  ~RelayedConnection();

  Outcome Move(int64_t now_ns);
  // The client has ended both directions: nobody hears an answer any more.
  void HangUp() { is_hung_up_ = true; }
  int client() const { return client_.get(); }
  int server() const { return server_.get(); }
  uint32_t uid() const { return admission_.uid(); }
  // Which rule the client broke, for which it is cut off. A limit that is reached is none.
  const absl::Status& broken() const { return meter_.status(); }

 private:
  // Of what one side has sent; `ready` bytes of it may be given to the other.
  struct Direction {
    std::string bytes;
    size_t ready = 0;
    bool has_ended = false;
    bool is_lost = false;  // the other side takes nothing any more
  };

  static bool Read(const UniqueFd& from, Direction& direction);
  static bool Write(const UniqueFd& to, Direction& direction);
  bool MoveRequests(int64_t now_ns);
  bool MoveAnswers();
  void SayRefusal();
  const absl::Status& refused() const { return broken().ok() ? admission_.refused() : broken(); }
  bool IsOver() const;

  const UniqueFd client_;
  const UniqueFd server_;
  Admission admission_;
  RequestMeter meter_;
  Direction requests_;
  Direction answers_;
  bool is_hung_up_ = false;
  bool has_said_it_ = false;
  Ending ending_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_RELAY_RELAYED_CONNECTION_H_
