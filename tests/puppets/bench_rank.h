// What bench_rank tells a benchmark, which reads and writes it from outside (/proc/PID/mem). Plain C.
#ifndef TESTS_PUPPETS_BENCH_RANK_H_
#define TESTS_PUPPETS_BENCH_RANK_H_

#include <stdint.h>

enum { BENCH_PASSES = 64 };

// Entries of the first thread so far, and when that was. A reader that came in between sees a wrong `check`.
struct bench_reading {
  uint64_t entries;
  int64_t ns;      // CLOCK_MONOTONIC
  uint64_t check;  // entries ^ ns
};

// One entry of a long loop.
struct bench_pass {
  int64_t begin_ns;
  int64_t end_ns;
  int64_t faults;  // minor faults of the thread
};

struct bench_control {
  struct bench_reading reading;
  uint64_t passes;  // written so far; number i is at i % BENCH_PASSES
  struct bench_pass pass[BENCH_PASSES];
  uint64_t sweep_asked;  // raised by the benchmark: write to every page of the first sweep_bytes
  uint64_t sweep_bytes;
  uint64_t sweep_done;  // sweep_asked of the last one that is over
  int64_t sweep_ns;
  int64_t sweep_faults;
};

#endif  // TESTS_PUPPETS_BENCH_RANK_H_
