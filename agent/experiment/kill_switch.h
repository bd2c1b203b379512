// agent/experiment/kill_switch.h - whether loops may be altered on this node at all: its configuration and the disable file.
//
// Shape    Obstacle looks now; Thrown is for those who ask all the time and looks for the file once in kLookNs.
// Units    ns of CLOCK_MONOTONIC.
// Threads  thread-safe.
#ifndef AGENT_EXPERIMENT_KILL_SWITCH_H_
#define AGENT_EXPERIMENT_KILL_SWITCH_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "core/base/clock.h"

namespace perfd {

class KillSwitch {
 public:
  static constexpr int64_t kLookNs = 10 * kNsPerMs;

  // allowed: by the site's configuration, from now on; null: always. disable_file: empty: there is none.
  KillSwitch(const std::atomic<bool>* allowed, std::string disable_file)
      : allowed_(allowed), disable_file_(std::move(disable_file)) {}

  // Why no loop may be altered here now; empty: it may.
  std::string Obstacle() const;
  bool Thrown() const;

 private:
  const std::atomic<bool>* const allowed_;
  const std::string disable_file_;
  mutable std::atomic<int64_t> looked_ns_ = 0;
  mutable std::atomic<bool> thrown_ = false;  // at that time
};

}  // namespace perfd

#endif  // AGENT_EXPERIMENT_KILL_SWITCH_H_
