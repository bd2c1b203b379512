// agent/shadow/run/fault_watch.h - how many faults a rank has because of a shadow, beside those that it has anyway. Pure.
//
// Shape    Observe the rank's counter as often as somebody looks; between shadows that tells its own rate. ShadowEnded begins a watch, and
//          LaterFaults ends it: once, when long enough ago for the rank to have written to what it writes.
// Units    ns of CLOCK_MONOTONIC; minor faults since the rank began.
// Threads  thread-compatible.
#ifndef AGENT_SHADOW_RUN_FAULT_WATCH_H_
#define AGENT_SHADOW_RUN_FAULT_WATCH_H_

#include <cstdint>
#include <optional>

namespace perfd::agent {

class FaultWatch {
 public:
  void Observe(int64_t now_ns, uint64_t faults);
  void ShadowEnded(int64_t now_ns, uint64_t faults);
  std::optional<uint64_t> LaterFaults(int64_t now_ns, uint64_t faults);
  // What is watched says nothing any more.
  void Forget() { ended_.reset(); }
  bool watches() const { return ended_.has_value(); }

 private:
  struct Reading {
    int64_t ns = 0;
    uint64_t faults = 0;
  };
  static double Since(const Reading& then, int64_t now_ns, uint64_t faults);  // faults per ns

  std::optional<Reading> quiet_since_;  // no shadow's faults are counted from there
  std::optional<Reading> ended_;
  double own_rate_ = 0;
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RUN_FAULT_WATCH_H_
