// tests/bench/injection_bench.h - what altering loops costs a rank, measured on a process of our own by the real lab.
//
// Shape    each part prints its tables and returns; what cannot be measured is a line that says why.
// Errors   not OK: the part could not go on; the rank it used is gone by then.
// Bounds   a part ends soon after BenchSetup::deadline_ns; what is missing then is said.
#ifndef TESTS_BENCH_INJECTION_BENCH_H_
#define TESTS_BENCH_INJECTION_BENCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/attach/tracer.h"
#include "agent/shadow/rank_injector.h"

namespace perfd::agent {

struct BenchSetup {
  Tracer* tracer = nullptr;
  const Journal* journal = nullptr;
  bool json = false;
  bool quick = false;
  std::vector<int64_t> megabytes;        // of the memory part; empty: its own choice
  int64_t working_set_bytes = 16 << 20;  // of its loop: three arrays, one of them written
  int64_t deadline_ns = 0;               // CLOCK_MONOTONIC
  double ticks_per_ns = 0;
};

// Limits are wide, so that what is long is measured instead of refused.
InjectorOptions InjectorOptionsOf(const BenchSetup& setup);
// True when it is time to end; says that `what` is left out.
bool OutOfTime(const BenchSetup& setup, const std::string& what);
// Half of what the node, or our control group, has left.
uint64_t MostBytes();

// Cost of an idle entry, and what the retreat rule makes of it.
absl::Status BenchPassThrough(const BenchSetup& setup);
// How long a rank is held.
absl::Status BenchStops(const BenchSetup& setup);
// What a shadow costs by memory size, and what 2 % of the wall time buys.
absl::Status BenchMemory(const BenchSetup& setup);
// What a page costs that is copied after a fork.
absl::Status BenchFaults(const BenchSetup& setup);
// What is saved by leaving out memory that the loop does not touch.
absl::Status BenchTrim(const BenchSetup& setup);

}  // namespace perfd::agent

#endif  // TESTS_BENCH_INJECTION_BENCH_H_
