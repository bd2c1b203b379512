#include "daemon/aggregate/row_time.h"

#include <algorithm>
#include <cmath>

#include "absl/numeric/int128.h"
#include "absl/strings/match.h"

namespace perfd::daemon {
namespace {

// Below this, nothing that samples; also keeps the quotient far from overflow.
constexpr double kLeastHz = 1e-3;

uint64_t NsPerSample(double frequency_hz) {
  if (!(frequency_hz >= kLeastHz)) return 1;
  return std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(1e9 / frequency_hz)));
}

}  // namespace

bool WeighsNs(const std::string& event) {
  return absl::StartsWith(event, "cpu-clock") || absl::StartsWith(event, "task-clock");
}

RowTime::RowTime(const SamplingSetup& setup)
    : weight_is_ns_(WeighsNs(setup.event)), ns_per_sample_(NsPerSample(setup.frequency_hz)) {}

uint64_t RowTime::TimeOf(const WindowRow& row) {
  if (row.samples == 0) return 0;
  absl::uint128 ns = absl::uint128(row.samples) * ns_per_sample_;
  if (weight_is_ns_ && row.weight > 0) ns = row.weight;
  const uint64_t taken = absl::Uint128Low64(std::min(ns, absl::uint128(left_ns_)));
  left_ns_ -= taken;
  return taken;
}

}  // namespace perfd::daemon
