// agent/sample/access_events.h - the events of accesses of one source, and how often they are sampled.
//
// Shape    Add each; Count every sample; Adjust now and then gives those whose period is to change.
// Rules    for each sample of time a quarter of one of accesses, over all events and threads: so threads that rest or sleep
//          give none away, and what accesses cost follows what time costs.
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
  static constexpr uint64_t kLeastSamples = 100;  // of time, between two looks
  static constexpr uint64_t kFlood = 200;         // of accesses: looked at before that
  static constexpr double kMostOff = 2;           // so many times too many or too few are let be
  static constexpr double kMostSlower = 64;
  static constexpr double kMostQuicker = 8;
  static constexpr uint64_t kLeastPeriod = 1'009;
  static constexpr uint64_t kMostPeriod = uint64_t{1} << 31;

  // `step`: periods are multiples of it.
  void Add(FurtherEvent event, uint64_t step);
  const std::vector<FurtherEvent>& events() const { return events_; }
  // Of an event, in the order of Add, from 1 on; 0: of time.
  void Count(size_t event) { ++(event == 0 ? time_ : counts_[event - 1]); }

  // What a sample of an event stands for, which says `told` of itself.
  uint64_t PeriodOf(size_t event, uint64_t told) const;

  struct Change {
    size_t event = 0;  // as in events()
    uint64_t period = 0;
  };
  // What is opened from now on has it already.
  std::vector<Change> Adjust();

 private:
  std::vector<FurtherEvent> events_;
  std::vector<uint64_t> steps_;
  std::vector<uint64_t> counts_;  // since they were last looked at
  uint64_t time_ = 0;
};

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_ACCESS_EVENTS_H_
