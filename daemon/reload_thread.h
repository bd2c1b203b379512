// daemon/reload_thread.h - reloads beside the main thread, which serves signals and the watchdog whatever a reload waits for.
//
// Shape    Ask() reads everything anew, soon; what is asked for meanwhile comes down to one more reload. The service manager
//          is told when it begins and ends, and in the line of its status whether all of it was done.
// Threads  Ask never waits. Own thread: perfd-reload; the destructor waits for a reload under way.
#ifndef DAEMON_RELOAD_THREAD_H_
#define DAEMON_RELOAD_THREAD_H_

#include <functional>
#include <utility>

#include "core/service/service_notify.h"
#include "daemon/ingest/worker.h"
#include "daemon/reload.h"

namespace perfd::daemon {

class ReloadThread {
 public:
  // `notify` must outlive it.
  ReloadThread(Reloader reloader, const ServiceNotify& notify)
      : reloader_(std::move(reloader)), notify_(notify) {}
  ~ReloadThread() { worker_.Close(absl::ZeroDuration()); }

  void Ask();
  // Ask as a function; empty when there are no files to read.
  std::function<void()> Asking();

 private:
  void Reload();

  Reloader reloader_;
  const ServiceNotify& notify_;
  Worker worker_{"perfd-reload", 1, 1};
};

}  // namespace perfd::daemon

#endif  // DAEMON_RELOAD_THREAD_H_
