// daemon/aggregate/aggregate_state.h - the merged sums of one profile as a plain value.
//
// Shape    canonical: every list sorted and without duplicates, so equal aggregates are equal values.
//          The store keeps it (aggregate_codec.h); the report reads the living ProfileAggregate.
// Units    samples; weight in ns (cpu-clock) or events; cpu_ns always ns of CPU time (row_time.h), wall_ns ns of elapsed time. Clusters in ns of CPU time:
//          what a sample stands for differs between nodes and over time. How much the sums hold: core/analysis/share_interval.h.
#ifndef DAEMON_AGGREGATE_AGGREGATE_STATE_H_
#define DAEMON_AGGREGATE_AGGREGATE_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "core/model/accounting.h"
#include "core/model/window.h"
#include "daemon/aggregate/findings/findings.h"
#include "daemon/aggregate/paths/path_table.h"

namespace perfd::daemon {

struct Counts {
  uint64_t samples = 0;
  uint64_t weight = 0;
  uint64_t cpu_ns = 0;
  uint64_t wall_ns = 0;  // of the rank's elapsed time

  // Over samples, each of which stands for the same: its ns, squared.
  absl::uint128 Squares() const;
  absl::uint128 WallSquares() const;  // the same of wall_ns
  Counts& operator+=(const Counts& other);
  bool operator==(const Counts&) const = default;
};

// What the interval of a share of elapsed time follows from; cluster: one rank in one window.
struct WallSquares {
  absl::uint128 yy = 0;  // over clusters: ns here, squared
  absl::uint128 xy = 0;  // over clusters: ns here x elapsed ns
  absl::uint128 ww = 0;  // over samples here: the ns of each, squared

  WallSquares& operator+=(const WallSquares& other);
  bool operator==(const WallSquares&) const = default;
};

struct LocationTotals {
  CodeLocation location;
  Counts counts;
  absl::uint128 yy = 0;  // over clusters: ns here, squared
  absl::uint128 xy = 0;  // over clusters: ns here x ns of the cluster
  absl::uint128 ww = 0;  // over samples here: the ns of each, squared
  // Of the windows with samples here: begin of the first, end of the last. Both 0: not known.
  int64_t first_unix_ns = 0;
  int64_t last_unix_ns = 0;
  WallSquares wall = {};

  // Commutative, associative, idempotent.
  void Span(int64_t first_ns, int64_t last_ns);
  bool operator==(const LocationTotals&) const = default;
};

struct RankTotals {
  RankInfo info;
  uint64_t elapsed_ns = 0;
  uint64_t cpu_wait_ns = 0;  // its threads wanted a CPU and had none

  bool operator==(const RankTotals&) const = default;
};

struct ThreadTotals {
  ThreadKey key;
  Counts counts;

  bool operator==(const ThreadTotals&) const = default;
};

struct Cell {
  uint32_t thread = 0;
  uint32_t location = 0;
  Counts counts;

  bool operator==(const Cell&) const = default;
};

struct NodeTotals {
  std::string node;
  uint64_t windows = 0;
  uint64_t covered_ns = 0;
  absl::uint128 frequency_span = 0;  // sum of frequency x span, mHz x ns
  SamplingSetup setup;               // of the last window, which the next three name
  int64_t last_start_unix_ns = 0;
  uint64_t last_sequence = 0;
  std::string last_stream_id;

  double MeanFrequencyHz() const;
  NodeTotals& operator+=(const NodeTotals& other);
  bool operator==(const NodeTotals&) const = default;
};

// Detail that the limits did not let in, in samples (ranks: in windows). The totals hold it all.
struct LostDetail {
  uint64_t location_samples = 0;
  uint64_t thread_samples = 0;
  uint64_t cell_samples = 0;
  uint64_t stack_samples = 0;
  uint64_t ranks = 0;

  bool Any() const { return *this != LostDetail{}; }
  LostDetail& operator+=(const LostDetail& other);
  bool operator==(const LostDetail&) const = default;
};

// Elapsed time of all ranks.
struct WallSums {
  uint64_t clusters = 0;
  uint64_t elapsed_ns = 0;
  uint64_t cpu_wait_ns = 0;
  absl::uint128 xx = 0;    // over clusters: elapsed ns squared
  absl::uint128 ww = 0;    // over samples: the ns of each, squared
  uint64_t undivided = 0;  // windows with samples whose agent does not divide elapsed time

  // It was divided in every window.
  bool Known() const { return undivided == 0 && elapsed_ns > 0; }
  WallSums& operator+=(const WallSums& other);
  bool operator==(const WallSums&) const = default;
};

// Sums over the whole job. A cluster is one rank in one window, counted when it has samples.
struct JobTotals {
  uint64_t clusters = 0;
  uint64_t samples = 0;
  uint64_t cpu_ns = 0;
  absl::uint128 xx = 0;  // over clusters: ns squared
  absl::uint128 ww = 0;  // over samples: the ns of each, squared
  WallSums wall;
  Accounting accounting;
  OverheadFigures overhead;
  LostDetail lost;

  JobTotals& operator+=(const JobTotals& other);
  bool operator==(const JobTotals&) const = default;
};

struct AggregateState {
  std::vector<LocationTotals> locations;  // by LocationKey
  std::vector<ThreadTotals> threads;      // by key
  std::vector<Cell> cells;                // by thread, place
  std::vector<RankTotals> ranks;          // by node, rank, pid
  std::vector<NodeTotals> nodes;          // by name
  PathState paths;                        // of its calls, places are indices into `locations`
  JobTotals totals;
  FindingsState findings;

  bool operator==(const AggregateState&) const = default;
};

// Every index within its list; kDataLoss otherwise.
absl::Status CheckState(const AggregateState& state);

}  // namespace perfd::daemon

#endif  // DAEMON_AGGREGATE_AGGREGATE_STATE_H_
