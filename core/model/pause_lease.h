// core/model/pause_lease.h - when the ranks of a job may be paused, the same for all its nodes (docs/adr/0009).
//
// Shape    the daemon hands out a PauseLease with its order: windows of one length, one period apart, numbered by generation.
//          Whoever pauses within a window says so with a LeasedPause.
// Units    ns. Job time: the daemon's clock, ns since the epoch as it was when the daemon began, and never set since.
//          Window g begins at job time g x period_ns.
#ifndef CORE_MODEL_PAUSE_LEASE_H_
#define CORE_MODEL_PAUSE_LEASE_H_

#include <cstdint>
#include <vector>

namespace perfd {

// One instant on a node's CLOCK_MONOTONIC and in job time.
struct ClockReading {
  int64_t here_ns = 0;
  int64_t job_ns = 0;
  int64_t error_ns = 0;  // job_ns is right within this, both ways

  bool operator==(const ClockReading&) const = default;
};

struct PauseLease {
  int64_t period_ns = 0;
  int64_t window_ns = 0;    // from a window's begin: no pause begins later
  int32_t nodes = 1;        // that hold this lease; each may use the whole budget of the order
  ClockReading clock = {};  // as the daemon knew it when it gave the lease

  bool operator==(const PauseLease&) const = default;
};

// The ranks of one node stood still, within the window of `generation`.
struct LeasedPause {
  uint64_t generation = 0;
  int64_t begin_ns = 0;  // after the window's begin
  int64_t pause_ns = 0;
  int64_t error_ns = 0;  // of begin_ns

  bool operator==(const LeasedPause&) const = default;
};

// Of one node in one window of measurements.
struct LeasedPauses {
  std::vector<LeasedPause> pauses;
  uint64_t dropped = 0;  // that could not be kept until this window

  bool operator==(const LeasedPauses&) const = default;
};

// What a foreign figure may be; sums of any number that is kept stay below 2^62.
inline constexpr int64_t kLongestPauseNs = int64_t{3'600'000'000'000};
inline constexpr int64_t kLongestPeriodNs = kLongestPauseNs;

}  // namespace perfd

#endif  // CORE_MODEL_PAUSE_LEASE_H_
