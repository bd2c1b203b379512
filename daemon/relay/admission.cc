#include "daemon/relay/admission.h"

#include <utility>

#include "absl/status/statusor.h"

namespace perfd::daemon {

bool Admission::Proceed(RequestMeter& meter, int64_t now_ns) {
  if (meter.needed() == 0) room_by_ns_.reset();  // its call may have ended meanwhile
  if (meter.call_waits()) return BeginCall(meter, now_ns);
  return meter.needed() > 0 && refused_.ok() && FindRoom(meter, now_ns);
}

bool Admission::BeginCall(RequestMeter& meter, int64_t now_ns) {
  if (!shared_.rules.is_trusted(uid_)) {
    const int64_t calls = shared_.limits.Value(Limit::kCallsPerUser);
    if (!call_at_ns_.has_value()) call_at_ns_ = shared_.pace.Next(uid_, calls, now_ns);
    if (now_ns < *call_at_ns_) return false;
  }
  call_at_ns_.reset();
  meter.BeginCall();
  return true;
}

bool Admission::FindRoom(RequestMeter& meter, int64_t now_ns) {
  Limits& limits = shared_.limits;
  const auto size = static_cast<int64_t>(meter.needed());
  if (shared_.rules.is_trusted(uid_)) {
    meter.Admit(limits.Hold(Limit::kDoorMemory, uid_, size));
    return true;
  }
  std::optional<Share> room = limits.TryAcquire(Limit::kDoorMemory, uid_, size);
  if (!room.has_value()) {
    if (!room_by_ns_.has_value()) room_by_ns_ = now_ns + shared_.rules.room_within_ns;
    if (now_ns < *room_by_ns_) return false;
    absl::StatusOr<Share> last = limits.Acquire(Limit::kDoorMemory, uid_, size);
    refused_ = last.status();
    if (!last.ok()) return false;
    room = *std::move(last);
  }
  room_by_ns_.reset();
  meter.Admit(*std::move(room));
  return true;
}

}  // namespace perfd::daemon
