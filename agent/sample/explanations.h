// agent/sample/explanations.h - the records that samples are understood by, out of several rings, in the order of time.
//
// Shape    per ring, after its Snapshot: CollectExplanations; then SortByTime; then the samples themselves can be read.
// Why      an exec, a mapping or a fork is told of in one ring, and samples that need it are in others: with a ring per
//          thread those of its threads, with a ring per CPU those of everything that moves between CPUs.
// Units    CLOCK_MONOTONIC, ns; records of the same time keep the order of their rings.
#ifndef AGENT_SAMPLE_EXPLANATIONS_H_
#define AGENT_SAMPLE_EXPLANATIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "agent/sample/ring/ring_buffer.h"
#include "core/perfdata/records/event_set.h"

namespace perfd::agent {

struct Explanation {
  uint64_t time_ns = 0;  // malformed: of what came before it in its ring
  size_t ring = 0;
  PerfRecord record;  // a mapping, a task event, or malformed
};

// Appends those that the last Snapshot saw, but for new names of threads; nothing of the ring is consumed.
void CollectExplanations(RingBuffer& buffer, EventSet& events, size_t ring,
                         std::vector<Explanation>* out);
void SortByTime(std::vector<Explanation>* explanations);

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_EXPLANATIONS_H_
