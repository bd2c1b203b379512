// daemon/report/share_of.h - parts of wholes.
//
// Threads  thread-safe (pure).
#ifndef DAEMON_REPORT_SHARE_OF_H_
#define DAEMON_REPORT_SHARE_OF_H_

#include <algorithm>
#include <cstdint>

namespace perfd::daemon {

// 0 of nothing is 0.
inline double RatioOf(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// At most 1, whatever foreign sums say.
inline double ShareOf(uint64_t part, uint64_t whole) {
  return std::min(1.0, RatioOf(part, whole));
}

}  // namespace perfd::daemon

#endif  // DAEMON_REPORT_SHARE_OF_H_
