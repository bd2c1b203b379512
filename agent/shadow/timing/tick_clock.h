// agent/shadow/timing/tick_clock.h - TSC ticks and CLOCK_MONOTONIC, one in terms of the other.
//
// Shape    the rate is measured between construction and use; the first use waits until 10 ms have passed.
// Units    ticks of the TSC, ns.
// Threads  thread-safe (const).
// Source   Intel SDM vol. 3, 18.17 (invariant TSC).
#ifndef AGENT_SHADOW_TIMING_TICK_CLOCK_H_
#define AGENT_SHADOW_TIMING_TICK_CLOCK_H_

#include <cstdint>

namespace perfd::agent {

class TickClock {
 public:
  TickClock();

  static uint64_t Ticks();
  double TicksPerNs() const;
  uint64_t ToTicks(int64_t ns) const {
    return static_cast<uint64_t>(static_cast<double>(ns) * TicksPerNs());
  }
  int64_t ToNs(uint64_t ticks) const {
    return static_cast<int64_t>(static_cast<double>(ticks) / TicksPerNs());
  }
  // When the TSC stood at `ticks`.
  int64_t MonotonicAt(uint64_t ticks) const;

 private:
  struct Moment {
    uint64_t ticks = 0;
    int64_t ns = 0;
  };
  static Moment Now();

  const Moment begin_;
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_TIMING_TICK_CLOCK_H_
