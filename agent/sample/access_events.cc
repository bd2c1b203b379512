#include "agent/sample/access_events.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace perfd::agent {
namespace {

uint64_t RoundTo(uint64_t step, double period) {
  const double bounded = std::clamp(period, static_cast<double>(AccessEvents::kLeastPeriod),
                                    static_cast<double>(AccessEvents::kMostPeriod));
  const auto steps = static_cast<uint64_t>(std::llround(bounded / static_cast<double>(step)));
  return std::max<uint64_t>(steps, 1) * step;
}

}  // namespace

void AccessEvents::Add(FurtherEvent event, uint64_t step) {
  events_.push_back(std::move(event));
  steps_.push_back(step);
  counts_.push_back(0);
}

// What does not tell its period has been opened with another one.
uint64_t AccessEvents::PeriodOf(size_t event, uint64_t told) const {
  const perf_event_attr& attr = events_[event - 1].attr;
  return (attr.sample_type & PERF_SAMPLE_PERIOD) != 0 ? told : attr.sample_period;
}

std::vector<AccessEvents::Change> AccessEvents::Adjust() {
  const bool flooded =
      std::any_of(counts_.begin(), counts_.end(), [](uint64_t count) { return count > kFlood; });
  if (events_.empty() || (time_ < kLeastSamples && !flooded)) return {};
  std::vector<Change> changes;
  const double wanted = kPart * static_cast<double>(std::max<uint64_t>(time_, 1)) /
                        static_cast<double>(events_.size());
  for (size_t i = 0; i < events_.size(); ++i) {
    const double off = static_cast<double>(std::exchange(counts_[i], 0)) / wanted;
    if (off <= kMostOff && off >= 1 / kMostOff) continue;
    const auto before = events_[i].attr.sample_period;
    const uint64_t period = RoundTo(
        steps_[i], static_cast<double>(before) * std::clamp(off, 1 / kMostQuicker, kMostSlower));
    if (period == before) continue;
    events_[i].attr.sample_period = period;
    changes.push_back({i, period});
  }
  time_ = 0;
  return changes;
}

}  // namespace perfd::agent
