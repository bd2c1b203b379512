#include "agent/anonymous/process_id.h"

#include <time.h>
#include <unistd.h>

namespace perfd::agent {

// Source: proc(5), /proc/PID/stat field 22: ticks of CLOCK_BOOTTIME.
int64_t BeganAtUnixNs(const Clock& clock, uint64_t start_ticks) {
  timespec boot{};
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  const int64_t boot_ns = boot.tv_sec * kNsPerSecond + boot.tv_nsec;
  const int64_t tick_ns = kNsPerSecond / ::sysconf(_SC_CLK_TCK);
  return clock.UnixNs() - boot_ns + static_cast<int64_t>(start_ticks) * tick_ns;
}

}  // namespace perfd::agent
