#include "client/rpc/backoff.h"

#include "core/base/clock.h"

namespace perfd::client {
namespace {

constexpr int64_t kGiveUpNs = 30 * kNsPerSecond;

}  // namespace

std::optional<absl::Duration> ReconnectPolicy::NextWait(int64_t now_ns) {
  if (!silent_since_ns_.has_value()) silent_since_ns_ = now_ns;
  if (now_ns - *silent_since_ns_ >= kGiveUpNs) return std::nullopt;
  return absl::Milliseconds(500);
}

}  // namespace perfd::client
