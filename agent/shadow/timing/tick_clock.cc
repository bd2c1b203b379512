#include "agent/shadow/timing/tick_clock.h"

#include <x86intrin.h>

#include "absl/time/clock.h"
#include "core/base/clock.h"

namespace perfd::agent {
namespace {

constexpr int64_t kLeastNs = 10 * kNsPerMs;

}  // namespace

TickClock::TickClock() : begin_(Now()) {}

uint64_t TickClock::Ticks() {
  return __rdtsc();
}

// The pair with the least time in between.
TickClock::Moment TickClock::Now() {
  Moment best;
  uint64_t least = ~uint64_t{0};
  for (int i = 0; i < 5; ++i) {
    const uint64_t before = Ticks();
    const int64_t ns = SystemClock().MonotonicNs();
    const uint64_t between = Ticks() - before;
    if (between >= least) continue;
    least = between;
    best = {before + between / 2, ns};
  }
  return best;
}

double TickClock::TicksPerNs() const {
  for (;;) {
    const Moment now = Now();
    if (now.ns - begin_.ns >= kLeastNs)
      return static_cast<double>(now.ticks - begin_.ticks) /
             static_cast<double>(now.ns - begin_.ns);
    absl::SleepFor(absl::Nanoseconds(kLeastNs - (now.ns - begin_.ns)));
  }
}

int64_t TickClock::MonotonicAt(uint64_t ticks) const {
  const double per_ns = TicksPerNs();
  return begin_.ns + static_cast<int64_t>(
                         static_cast<double>(static_cast<int64_t>(ticks - begin_.ticks)) / per_ns);
}

}  // namespace perfd::agent
