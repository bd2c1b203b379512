// daemon/aggregate/findings/findings.h - what a profile found beside where its time went: a section for each kind, added and merged alike.
//
// Shape    each section is a class of sums with Add, Absorb, State, Bytes and Freeze; whoever holds all of them uses these.
// Threads  thread-compatible.
#ifndef DAEMON_AGGREGATE_FINDINGS_FINDINGS_H_
#define DAEMON_AGGREGATE_FINDINGS_FINDINGS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/model/window.h"
#include "daemon/aggregate/findings/measured_loops.h"
#include "daemon/aggregate/findings/memory_table.h"

namespace perfd::daemon {

// Places are indices of the owner.
struct FindingsState {
  MeasuredState measured;
  MemoryState memory;

  bool operator==(const FindingsState&) const = default;
};

class Findings {
 public:
  Findings(const MeasureLimits& measured, const MemoryLimits& memory)
      : measured_(measured), memory_(memory) {}

  // `place`: see MemoryTable.
  void Add(const Window& window, const std::vector<uint32_t>& place);
  void Absorb(const FindingsState& state, const std::vector<uint32_t>& place);
  FindingsState State(const std::vector<uint32_t>& place) const;
  size_t Bytes() const { return measured_.Bytes() + memory_.Bytes(); }
  void Freeze();

  const MeasuredLoops& measured() const { return measured_; }
  const MemoryTable& memory() const { return memory_; }

 private:
  MeasuredLoops measured_;
  MemoryTable memory_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_AGGREGATE_FINDINGS_FINDINGS_H_
