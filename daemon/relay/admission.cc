#include "daemon/relay/admission.h"

#include <utility>

#include "absl/status/statusor.h"

namespace perfd::daemon {

bool Admission::Proceed(RequestMeter& meter, int64_t now_ns) {
  // Its call may have ended meanwhile.
  if (std::exchange(waits_, meter.waits()) != meter.waits()) place_by_ns_.reset();
  if (!meter.call_waits() && meter.needed() == 0) place_by_ns_.reset();
  if (!refused_.ok()) return false;
  if (meter.call_waits()) return BeginCall(meter, now_ns);
  return meter.needed() > 0 && FindRoom(meter, now_ns);
}

bool Admission::BeginCall(RequestMeter& meter, int64_t now_ns) {
  if (!shared_.rules.is_trusted(uid_)) {
    const int64_t calls = shared_.limits.Value(Limit::kCallsPerUser);
    if (!call_at_ns_.has_value()) call_at_ns_ = shared_.pace.Next(uid_, calls, now_ns);
    if (now_ns < *call_at_ns_) return false;
  }
  std::optional<Share> place = Occupy(Limit::kOpenCallsPerUser, 1, now_ns);
  if (!place.has_value()) return false;
  call_at_ns_.reset();
  meter.BeginCall(*std::move(place));
  return true;
}

bool Admission::FindRoom(RequestMeter& meter, int64_t now_ns) {
  std::optional<Share> room = Occupy(Limit::kDoorMemory, meter.needed(), now_ns);
  if (!room.has_value()) return false;
  meter.Admit(*std::move(room));
  return true;
}

std::optional<Share> Admission::Occupy(Limit limit, int64_t amount, int64_t now_ns) {
  Limits& limits = shared_.limits;
  if (shared_.rules.is_trusted(uid_)) return limits.Hold(limit, uid_, amount);
  std::optional<Share> share = limits.TryAcquire(limit, uid_, amount);
  if (!share.has_value()) {
    if (!place_by_ns_.has_value()) place_by_ns_ = now_ns + shared_.rules.room_within_ns;
    if (now_ns < *place_by_ns_) return std::nullopt;
    absl::StatusOr<Share> last = limits.Acquire(limit, uid_, amount);
    refused_ = last.status();
    if (!last.ok()) return std::nullopt;
    share = *std::move(last);
  }
  place_by_ns_.reset();
  return share;
}

}  // namespace perfd::daemon
