#include "core/wire/lease_wire.h"

#include "core/base/status_macros.h"
#include "core/wire/check/check.h"

namespace perfd::wire {
namespace {

constexpr int64_t kMostTimeNs =
    INT64_MAX / 4;  // of any clock: sums and differences of two stay in range
constexpr int64_t kLeastPeriodNs = 1'000'000;

}  // namespace

v1::ClockReading ToProto(const ClockReading& reading) {
  v1::ClockReading out;
  out.set_here_ns(reading.here_ns);
  out.set_job_ns(reading.job_ns);
  out.set_error_ns(reading.error_ns);
  return out;
}

absl::StatusOr<ClockReading> FromProto(const v1::ClockReading& reading) {
  RETURN_IF_ERROR(CheckRange(reading.here_ns(), 0, kMostTimeNs, "clock.here_ns"));
  RETURN_IF_ERROR(CheckRange(reading.job_ns(), 0, kMostTimeNs, "clock.job_ns"));
  RETURN_IF_ERROR(CheckRange(reading.error_ns(), 0, kMostTimeNs, "clock.error_ns"));
  return ClockReading{reading.here_ns(), reading.job_ns(), reading.error_ns()};
}

v1::PauseLease ToProto(const PauseLease& lease) {
  v1::PauseLease out;
  out.set_period_ns(lease.period_ns);
  out.set_window_ns(lease.window_ns);
  out.set_nodes(lease.nodes);
  *out.mutable_clock() = ToProto(lease.clock);
  return out;
}

absl::StatusOr<PauseLease> FromProto(const v1::PauseLease& lease) {
  RETURN_IF_ERROR(
      CheckRange(lease.period_ns(), kLeastPeriodNs, kLongestPeriodNs, "lease.period_ns"));
  RETURN_IF_ERROR(CheckRange(lease.window_ns(), 1, lease.period_ns(), "lease.window_ns"));
  RETURN_IF_ERROR(CheckRange(lease.nodes(), 1, kMaxNodes, "lease.nodes"));
  ASSIGN_OR_RETURN(const ClockReading clock, FromProto(lease.clock()));
  return PauseLease{lease.period_ns(), lease.window_ns(), lease.nodes(), clock};
}

v1::LeasedPause ToProto(const LeasedPause& pause) {
  v1::LeasedPause out;
  out.set_generation(pause.generation);
  out.set_begin_ns(pause.begin_ns);
  out.set_pause_ns(pause.pause_ns);
  out.set_error_ns(pause.error_ns);
  return out;
}

absl::StatusOr<LeasedPause> FromProto(const v1::LeasedPause& pause) {
  RETURN_IF_ERROR(CheckRange(pause.begin_ns(), 0, kLongestPauseNs, "pauses.begin_ns"));
  RETURN_IF_ERROR(CheckRange(pause.pause_ns(), 0, kLongestPauseNs, "pauses.pause_ns"));
  RETURN_IF_ERROR(CheckRange(pause.error_ns(), 0, kLongestPauseNs, "pauses.error_ns"));
  return LeasedPause{pause.generation(), pause.begin_ns(), pause.pause_ns(), pause.error_ns()};
}

}  // namespace perfd::wire
