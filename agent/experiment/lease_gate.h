// agent/experiment/lease_gate.h - a profile's pause lease as one node keeps it: which window is whose turn, what it costs.
//
// Shape    without a lease nothing is gated: charges are 1. With one: NextTurn, then the step within its slot, then Record.
// Units    ns of CLOCK_MONOTONIC, unless said "job".
// Errors   NextTurn without an answer: no loop is open, or this node's clock is not to be trusted at present - then nothing
//          is armed until the daemon has read it again.
// Threads  thread-compatible.
// Source   docs/adr/0009; core/analysis/lease_windows.h.
#ifndef AGENT_EXPERIMENT_LEASE_GATE_H_
#define AGENT_EXPERIMENT_LEASE_GATE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "agent/experiment/lease_table.h"
#include "agent/experiment/steps/loop_experiment.h"
#include "core/analysis/lease_windows.h"
#include "core/model/measure_order.h"

namespace perfd::agent {

struct LeaseSlot {
  uint64_t generation = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;        // disarmed by then, so that no pause begins after the window
  int64_t begin_job_ns = 0;  // of the window
  int64_t end_job_ns = 0;
  ClockReading clock;  // by which it was found
};

struct LeaseTurn {
  size_t loop = 0;
  LeaseSlot slot;
};

// Lets a step arm within the slot only, after as many entries as on every other node.
void KeepWithin(const LeaseSlot& slot, int64_t entry_ns, StepRoom& room);

class LeaseGate {
 public:
  // Before a window: for the stops that put a jump in, and for reading what a shadow will cost.
  static constexpr int64_t kReadyNs = 50'000'000;
  // A loop is disarmed within this.
  static constexpr int64_t kDisarmNs = 3'000'000;
  static constexpr double kEntriesAwaited = 16;  // by one thread, within a window

  // `board` may be null.
  LeaseGate(const MeasureOrder& order, const LeaseTable* lease_table)
      : profile_id_(order.profile_id), lease_(order.lease), lease_table_(lease_table) {}

  bool active() const { return lease_.has_value(); }
  // What a pause within a window, and one outside of all, costs of the budget.
  double Charge() const;
  double OutsideCharge() const { return active() ? static_cast<double>(lease_->nodes) : 1; }

  // `entry_ns`: time between two entries of a thread; none: the loop is not open.
  using EntryNs = std::function<std::optional<int64_t>(size_t loop)>;
  std::optional<LeaseTurn> NextTurn(int64_t now_ns, size_t loops, const EntryNs& entry_ns) const;

  // None: it did not begin within its window.
  static std::optional<LeasedPause> Record(const LeaseSlot& slot, int64_t begin_ns, int64_t end_ns);

 private:
  ClockReading Clock() const;

  const std::string profile_id_;
  const std::optional<PauseLease> lease_;
  const LeaseTable* const lease_table_;
};

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_LEASE_GATE_H_
