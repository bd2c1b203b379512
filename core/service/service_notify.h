// core/service/service_notify.h - tells the service manager that we are ready, reload, stop, and live.
//
// Shape    FromEnvironment before the first thread: it takes the variables away, so that no child speaks for us.
//          Without NOTIFY_SOCKET every call does nothing.
// Errors   none: a message that cannot be sent at once is lost; the manager acts on the next.
// Threads  thread-safe after FromEnvironment.
// Source   sd_notify(3) "Standalone Implementations" and "Well-known assignments"; sd_watchdog_enabled(3). Thirty lines of
//          our own rather than libsystemd, which would bring its compression libraries into processes with privileges.
#ifndef CORE_SERVICE_SERVICE_NOTIFY_H_
#define CORE_SERVICE_SERVICE_NOTIFY_H_

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"

namespace perfd {

class ServiceNotify {
 public:
  ServiceNotify() = default;  // tells nobody
  static ServiceNotify FromEnvironment();

  // `status`: one line shown by `systemctl status`.
  void Ready(absl::string_view status) const;
  void Reloading() const;  // until the next Ready
  void Stopping() const;
  void Alive() const;
  // Alive must be told more often than this; zero: nobody watches.
  absl::Duration watchdog() const { return watchdog_; }

 private:
  void Send(const std::string& message) const;

  UniqueFd socket_;      // invalid: no manager listens
  std::string address_;  // "/path", or "\0name" of an abstract socket
  absl::Duration watchdog_ = absl::ZeroDuration();
};

}  // namespace perfd

#endif  // CORE_SERVICE_SERVICE_NOTIFY_H_
