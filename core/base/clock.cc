#include "core/base/clock.h"

#include <time.h>

namespace perfd {
namespace {

int64_t Read(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return int64_t{ts.tv_sec} * kNsPerSecond + ts.tv_nsec;
}

}  // namespace

int64_t SystemClock::MonotonicNs() const {
  return Read(CLOCK_MONOTONIC);
}
int64_t SystemClock::UnixNs() const {
  return Read(CLOCK_REALTIME);
}

}  // namespace perfd
