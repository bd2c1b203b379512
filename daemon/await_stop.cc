#include "daemon/await_stop.h"

#include <csignal>

#include "core/base/version.h"
#include "core/service/spine_watch.h"

namespace perfd::daemon {

int AwaitStop(const StopSignal& signals, const ServiceNotify& notify, const ServiceLife& life) {
  SpineWatch watch(notify.watchdog());
  notify.Ready(kVersion);
  while (true) {
    const int signal = signals.Wait(watch.pause());
    if (signal == SIGHUP && life.reload) {
      life.reload();
    } else if (signal != 0) {
      notify.Stopping();
      return signal;
    }
    if (watch.Moved(life.turns())) notify.Alive();
  }
}

}  // namespace perfd::daemon
