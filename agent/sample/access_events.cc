#include "agent/sample/access_events.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace perfd::agent {

void AccessEvents::Add(FurtherEvent event, uint64_t step) {
  events_.push_back({.event = event, .step = step});
}

uint64_t AccessEvents::PeriodOf(size_t event, uint64_t told) const {
  const perf_event_attr& attr = at(event - 1).attr;
  return (attr.sample_type & PERF_SAMPLE_PERIOD) != 0 ? told : attr.sample_period;
}

// Those that have none take nothing from the others: of the other kind of core, or of stores in a program that has few.
double AccessEvents::WantedOfEach() const {
  const auto living = std::count_if(events_.begin(), events_.end(),
                                    [](const Paced& paced) { return paced.living; });
  return kPart * static_cast<double>(time_) / static_cast<double>(std::max<int64_t>(living, 1));
}

// `off`: so many times as many samples as are wanted.
bool AccessEvents::ChangePeriod(Paced& paced, double off) const {
  const uint64_t before = paced.event.attr.sample_period;
  const double wanted =
      static_cast<double>(before) * std::clamp(off, 1 / kMostQuicker, kMostSlower);
  const double bounded = std::clamp(wanted, static_cast<double>(std::min(before, kLeastPeriod)),
                                    static_cast<double>(kMostPeriod));
  const auto steps = static_cast<uint64_t>(std::llround(bounded / static_cast<double>(paced.step)));
  paced.event.attr.sample_period = std::max<uint64_t>(steps, 1) * paced.step;
  return paced.event.attr.sample_period != before;
}

std::vector<AccessEvents::Change> AccessEvents::Adjust(size_t rings) {
  std::vector<Change> changes;
  const bool enough = time_ >= kLeastSamples;
  const uint64_t flood = kFlood + kFloodPerRing * rings;
  for (Paced& paced : events_) paced.living |= paced.count > 0;
  const double wanted = WantedOfEach();
  for (size_t i = 0; i < events_.size(); ++i) {
    Paced& paced = events_[i];
    if (!enough && paced.count <= flood) continue;  // too few to say, of this one
    const double off = static_cast<double>(std::exchange(paced.count, 0)) / std::max(wanted, 1.0);
    const bool right = off <= kMostOff && off >= 1 / kMostOff;
    if (!right && paced.living && ChangePeriod(paced, off))
      changes.push_back({i, paced.event.attr.sample_period});
  }
  if (enough) time_ = 0;
  return changes;
}

}  // namespace perfd::agent
