// core/perfdata/loss_count.h - what a recording lost, once, however often it tells of it.
//
// Rules    the rings tell of records that found no room; at its end perf writes down, without a time, what each event lost: the
//          same, and more where a ring did not come to tell. What the processor's own buffer lost is beside both.
// Source   tools/perf/builtin-record.c, record__read_lost_samples; kernel/events/ring_buffer.c, __perf_output_begin.
#ifndef CORE_PERFDATA_LOSS_COUNT_H_
#define CORE_PERFDATA_LOSS_COUNT_H_

#include <algorithm>
#include <cstdint>

#include "core/perfdata/records/record_decoder.h"

namespace perfd {

class LossCount {
 public:
  void Add(const LostRecord& lost) {
    uint64_t& sum = !lost.samples ? by_rings_ : lost.time_ns == 0 ? at_end_ : beside_;
    sum += lost.count;
  }
  uint64_t total() const { return std::max(by_rings_, at_end_) + beside_; }

 private:
  uint64_t by_rings_ = 0;
  uint64_t at_end_ = 0;
  uint64_t beside_ = 0;
};

}  // namespace perfd

#endif  // CORE_PERFDATA_LOSS_COUNT_H_
