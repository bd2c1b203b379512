// agent/sample/access_events.h - the events of accesses of one source, and how often they are sampled.
//
// Shape    Add each; Count every sample; Adjust now and then gives those whose period is to change.
// Rules    for each sample of time a quarter of one of accesses, over all events that have any and all threads: so threads that
//          rest or sleep give none away, and what accesses cost follows what time costs. An event becomes quicker slowly, and
//          never so quick that the first burst fills the rings; a flood is slowed down at once.
// Why      a fixed period, changed seldom: by frequency the kernel gives the samples of a burst periods that are wrong by a
//          factor of ten and more (docs/adr/0052).
// Threads  thread-compatible.
#ifndef AGENT_SAMPLE_ACCESS_EVENTS_H_
#define AGENT_SAMPLE_ACCESS_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "agent/sample/ring/perf_event.h"

namespace perfd::agent {

class AccessEvents {
 public:
  static constexpr double kPart = 0.25;           // of the samples of time
  static constexpr uint64_t kLeastSamples = 400;  // of time, between two looks
  static constexpr uint64_t kFlood = 200;  // of accesses, and kFloodPerRing: looked at before that
  static constexpr uint64_t kFloodPerRing = 20;
  static constexpr double kMostOff = 2;  // so many times too many or too few are let be
  static constexpr double kMostSlower = 64;
  static constexpr double kMostQuicker = 2;
  static constexpr uint64_t kLeastPeriod = 20'000;
  static constexpr uint64_t kMostPeriod = uint64_t{1} << 31;

  // `step`: periods are multiples of it.
  void Add(FurtherEvent event, uint64_t step);
  size_t size() const { return events_.size(); }
  const FurtherEvent& at(size_t i) const { return events_[i].event; }
  // Of an event, in the order of Add, from 1 on; 0: of time.
  void Count(size_t event) { ++(event == 0 ? time_ : events_[event - 1].count); }

  // What a sample of an event stands for, which says `told` of itself. Software events do not tell: what was sampled before a
  // change and is read after it is given the new one.
  uint64_t PeriodOf(size_t event, uint64_t told) const;

  struct Change {
    size_t event = 0;  // as in at()
    uint64_t period = 0;
  };
  // What is opened from now on has it already.
  std::vector<Change> Adjust(size_t rings);

 private:
  struct Paced {
    FurtherEvent event;
    uint64_t step = 1;
    uint64_t count = 0;   // since it was last looked at
    bool living = false;  // it has had samples
  };
  double WantedOfEach() const;
  bool ChangePeriod(Paced& paced, double off) const;

  std::vector<Paced> events_;
  uint64_t time_ = 0;  // samples of it since the last look at all
};

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_ACCESS_EVENTS_H_
