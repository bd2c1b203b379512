// agent/shadow/timing/live_reading.h - what reading the clock adds to a live instance: the way from the trampoline into the timed copy
// and out of it again, with nothing in between.
//
// Units    ticks of the TSC. The least that was ever measured here: a CPU that has just woken up may be slow. Each look takes
//          some 0.1 ms.
// Threads  thread-safe.
// Source   agent/shadow/payload/entry.S, agent/shadow/trampoline.cc: what lies between their two readings is repeated here.
#ifndef AGENT_SHADOW_TIMING_LIVE_READING_H_
#define AGENT_SHADOW_TIMING_LIVE_READING_H_

#include <cstdint>

namespace perfd::agent {

uint64_t LiveReadingTicks();

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_TIMING_LIVE_READING_H_
