// core/base/clock.h - the two clocks: wall time for records, monotonic time for intervals.
//
// Units    nanoseconds. Monotonic time is CLOCK_MONOTONIC and never steps; deadlines use only that.
#ifndef CORE_BASE_CLOCK_H_
#define CORE_BASE_CLOCK_H_

#include <cstdint>

namespace perfd {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t MonotonicNs() const = 0;
  virtual int64_t UnixNs() const = 0;
};

class SystemClock final : public Clock {
 public:
  int64_t MonotonicNs() const override;
  int64_t UnixNs() const override;
};

inline constexpr int64_t kNsPerSecond = 1'000'000'000;
inline constexpr int64_t kNsPerMs = 1'000'000;

}  // namespace perfd

#endif  // CORE_BASE_CLOCK_H_
