// agent/shadow/timing/live_reading.h - what reading the clock adds to a live instance: the way from the trampoline into the timed copy
// and out of it again, with nothing in between.
//
// Units    ticks of the TSC. Measured on this machine at the first call, some 0.5 ms.
// Threads  thread-safe.
// Source   agent/shadow/payload/entry.S, agent/shadow/trampoline.cc: what lies between their two readings is repeated here.
#ifndef AGENT_SHADOW_TIMING_LIVE_READING_H_
#define AGENT_SHADOW_TIMING_LIVE_READING_H_

#include <cstdint>

namespace perfd {

uint64_t LiveReadingTicks();

// Of an instance that took `ticks` with its readings; at least 1.
uint64_t WithoutReading(uint64_t ticks);

}  // namespace perfd

#endif  // AGENT_SHADOW_TIMING_LIVE_READING_H_
