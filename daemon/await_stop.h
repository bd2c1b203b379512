// daemon/await_stop.h - the main thread of perfd from the start to the end: signals, and tells the service manager.
#ifndef DAEMON_AWAIT_STOP_H_
#define DAEMON_AWAIT_STOP_H_

#include <cstdint>
#include <functional>

#include "core/service/service_notify.h"
#include "daemon/service/stop_signal.h"

namespace perfd::daemon {

struct ServiceLife {
  std::function<uint64_t()> turns;  // of the spine; the watchdog is fed only while it grows
  std::function<void()> reload;     // at SIGHUP, must not wait; empty: SIGHUP ends perfd
};

// The signal that ends perfd.
int AwaitStop(const StopSignal& signals, const ServiceNotify& notify, const ServiceLife& life);

}  // namespace perfd::daemon

#endif  // DAEMON_AWAIT_STOP_H_
