// agent/experiment/kill_switch.h - whether loops may be altered on this node at all: its configuration and the disable file.
//
// Shape    Obstacle looks now; Thrown is for those who ask all the time and looks for the file once in kScanNs.
// Units    ns of CLOCK_MONOTONIC.
// Threads  thread-safe.
#ifndef AGENT_EXPERIMENT_KILL_SWITCH_H_
#define AGENT_EXPERIMENT_KILL_SWITCH_H_

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"

namespace perfd::agent {

class KillSwitch {
 public:
  static constexpr int64_t kScanNs = 10 * kNsPerMs;

  // allowed: by the site's configuration, from now on; null: always. disable_file: empty: there is none.
  KillSwitch(const std::atomic<bool>* allowed, std::string disable_file)
      : allowed_(allowed), disable_file_(std::move(disable_file)) {}

  // Why no loop may be altered here now; empty: it may.
  std::string Obstacle() const {
    if (Forbidden())
      return "its configuration does not allow it (injection.allowed, --no-injection)";
    return FileExists() ? absl::StrCat(disable_file_, " exists") : "";
  }
  bool Thrown() const {
    if (Forbidden()) return true;
    const int64_t now = SystemClock().MonotonicNs();
    if (scanned_ns_ == 0 || now - scanned_ns_ >= kScanNs) {
      existed_ = FileExists();
      scanned_ns_ = now;
    }
    return existed_;
  }

 private:
  bool Forbidden() const { return allowed_ != nullptr && !*allowed_; }
  bool FileExists() const {
    return !disable_file_.empty() && access(disable_file_.c_str(), F_OK) == 0;
  }

  const std::atomic<bool>* const allowed_;
  const std::string disable_file_;
  mutable std::atomic<int64_t> scanned_ns_ = 0;
  mutable std::atomic<bool> existed_ = false;
};

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_KILL_SWITCH_H_
