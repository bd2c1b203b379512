// daemon/relay/admission.h - when what one connection's meter waits for may go on.
//
// Shape    Proceed lets the meter go on with what may: a call whose turn it is, a message that has room.
// Limits   Limit::kCallsPerUser: a call waits until it is its turn. Limit::kDoorMemory: a message that finds no room for a while is
//          refused.
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
  uint32_t most_message_bytes = 0;
  int64_t room_within_ns = 10 * kNsPerSecond;  // so long a message waits for room
  // Whose messages count, and are never refused; whose calls never wait.
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
  bool is_waiting() const { return call_at_ns_.has_value() || room_by_ns_.has_value(); }
  const absl::Status& refused() const { return refused_; }
  uint32_t uid() const { return uid_; }

 private:
  bool BeginCall(RequestMeter& meter, int64_t now_ns);
  bool FindRoom(RequestMeter& meter, int64_t now_ns);

  const uint32_t uid_;
  RelayShared& shared_;
  std::optional<int64_t> call_at_ns_;  // a call waits
  std::optional<int64_t> room_by_ns_;  // a message waits
  absl::Status refused_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_RELAY_ADMISSION_H_
