// daemon/reload.h - SIGHUP: what may change in a running perfd does; what may not is said by name.
//
// Shape    Reload() reads the configuration again, takes the live keys over into the running flags and applies every
//          setting, changed or not: a log file is opened anew, a policy file read again.
// Errors   a broken configuration keeps the old one; a setting that cannot be applied keeps what it was, but for one that is
//          `in_part`: that has taken over what it could. All is logged.
// Threads  thread-compatible: its own thread (reload_thread.h).
#ifndef DAEMON_RELOAD_H_
#define DAEMON_RELOAD_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/perfd_flags.h"

namespace perfd::daemon {

struct LiveSetting {
  std::string name;
  std::function<absl::Status(const PerfdFlags& flags)> apply;
  bool in_part = false;  // with an error, all but what the error says was done
};

class Reloader {
 public:
  using Read = std::function<absl::StatusOr<PerfdFlags>()>;

  Reloader(PerfdFlags running, Read read, std::vector<LiveSetting> settings)
      : running_(std::move(running)), read_(std::move(read)), settings_(std::move(settings)) {}

  // How many things went wrong.
  int Reload();
  const PerfdFlags& running() const { return running_; }
  // Without a file to read or to open anew, SIGHUP is what a closing terminal sends, and ends perfd.
  bool HasFiles() const {
    return !running_.config.empty() || !running_.log_file.empty() || !running_.policy.empty();
  }

 private:
  PerfdFlags running_;
  const Read read_;
  const std::vector<LiveSetting> settings_;
};

// The log's level and file.
absl::Status ApplyLog(const PerfdFlags& flags);

}  // namespace perfd::daemon

#endif  // DAEMON_RELOAD_H_
