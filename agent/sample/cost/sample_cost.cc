#include "agent/sample/cost/sample_cost.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "agent/sample/perf_clock.h"
#include "agent/sample/ring/perf_event.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/perfdata/records/record_decoder.h"

namespace perfd::agent {
namespace {

constexpr int64_t kMeasureNs = 10 * kNsPerMs;
// A CPU that a hypervisor lends to others meanwhile takes no samples.
constexpr int kTries = 5;
constexpr double kMeasureHz = 5000;
constexpr uint64_t kRingBytes = uint64_t{1} << 20;
constexpr size_t kMaxReadings = size_t{1} << 21;
constexpr size_t kUsualReadings = size_t{1} << 14;  // enough to know the usual gap
constexpr size_t kMinSamples = 15;

std::vector<int64_t> SampleTimes(RingBuffer& buffer, const perf_event_attr& attr) {
  std::vector<int64_t> times;
  RecordDecoder decoder(EventLayout::Of(attr), PerfClockOffsetNs(ProcFs()));
  for (auto record = buffer.Next(); !record.empty(); record = buffer.Next()) {
    const PerfRecord decoded = decoder.Decode(record);
    const Sample* sample = std::get_if<Sample>(&decoded);
    if (sample != nullptr) times.push_back(static_cast<int64_t>(sample->time_ns));
  }
  return times;
}

int64_t Median(std::vector<int64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

absl::StatusOr<uint64_t> CostFromGaps(const std::vector<int64_t>& readings,
                                      const std::vector<int64_t>& samples) {
  std::vector<int64_t> all;
  const size_t usual = std::min(readings.size(), kUsualReadings);
  for (size_t i = 1; i < usual; ++i) all.push_back(readings[i] - readings[i - 1]);
  std::vector<int64_t> hit;
  for (const int64_t time : samples) {
    const auto after = std::upper_bound(readings.begin(), readings.end(), time);
    if (after == readings.begin() || after == readings.end()) continue;
    hit.push_back(*after - *(after - 1));
  }
  if (hit.size() < kMinSamples) {
    return absl::UnavailableError("too few samples arrived to measure what one costs");
  }
  return static_cast<uint64_t>(std::max<int64_t>(Median(hit) - Median(all), 0));
}

namespace {

absl::StatusOr<uint64_t> MeasureOnce(const ChosenEvent& event) {
  perf_event_attr attr = event.attr;
  attr.sample_freq = RateValue(attr, kMeasureHz);
  PerfOpenResult opened = OpenPerfEvent(attr, {});
  if (!opened.fd.valid())
    return PerfOpenError(opened.error, event.name, "this thread (calibration)");
  ASSIGN_OR_RETURN(PerfRing ring, PerfRing::Create(std::move(opened.fd), kRingBytes));
  std::vector<int64_t> readings;
  readings.reserve(kMaxReadings);
  const SystemClock clock;
  const int64_t end = clock.MonotonicNs() + kMeasureNs;
  do {
    readings.push_back(clock.MonotonicNs());
  } while (readings.back() < end && readings.size() < kMaxReadings);
  ring.Disable();
  return CostFromGaps(readings, SampleTimes(ring.buffer(), attr));
}

}  // namespace

absl::StatusOr<uint64_t> MeasureSampleCost(const ChosenEvent& event) {
  absl::StatusOr<uint64_t> cost;
  for (int i = 0; i < kTries; ++i) {
    cost = MeasureOnce(event);
    if (!absl::IsUnavailable(cost.status())) break;
  }
  return cost;
}

}  // namespace perfd::agent
