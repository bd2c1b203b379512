// daemon/relay/admission.h - when what one connection's meter waits for may go on.
//
// Shape    Proceed lets the meter go on with what may: a call whose turn it is, a message that has room.
// Limits   Limit::kCallsPerUser: a call waits until it is its turn. Limit::kOpenCallsPerUser, kDoorMemory: a call or a message that
//          finds no place for a while is refused.
// Errors   refused(), for good: kResourceExhausted.
// Threads  thread-compatible.
#ifndef DAEMON_RELAY_ADMISSION_H_
#define DAEMON_RELAY_ADMISSION_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "core/base/clock.h"
#include "daemon/limits/limits.h"
#include "daemon/relay/call_pace.h"
#include "daemon/relay/request_meter.h"

namespace perfd::daemon {

struct RelayRules {
  MessageSizes sizes;
  // So long a message waits for room, and a call for its place. Meanwhile nothing of the connection is read, keepalives neither,
  // whose answer both sides await for 10 s.
  int64_t room_within_ns = 5 * kNsPerSecond;
  // Whose messages and calls count, and are never refused; whose calls never wait.
  std::function<bool(uint32_t uid)> is_trusted = [](uint32_t) { return false; };
};

// What all connections have together.
struct RelayShared {
  Limits& limits;
  const RelayRules rules;
  CallPace pace{};
};

class Admission {
 public:
  // `shared` outlives it.
  Admission(uint32_t uid, RelayShared& shared) : uid_(uid), shared_(shared) {}

  // False: nothing waits, or it has to wait on, or it is refused.
  bool Proceed(RequestMeter& meter, int64_t now_ns);
  bool is_waiting() const { return call_at_ns_.has_value() || place_by_ns_.has_value(); }
  const absl::Status& refused() const { return refused_; }
  uint32_t uid() const { return uid_; }

 private:
  bool BeginCall(RequestMeter& meter, int64_t now_ns);
  bool FindRoom(RequestMeter& meter, int64_t now_ns);
  // None: not yet, or it is refused.
  std::optional<Share> Occupy(Limit limit, int64_t amount, int64_t now_ns);

  const uint32_t uid_;
  RelayShared& shared_;
  std::optional<int64_t> call_at_ns_;   // a call waits for its turn
  std::optional<int64_t> place_by_ns_;  // a call or a message waits for its place
  uint64_t waits_ = 0;                  // which message it is
  absl::Status refused_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_RELAY_ADMISSION_H_
