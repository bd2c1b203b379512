// tests/bench/bench_rank.h - a process to measure on (tests/puppets/bench_rank.c), and what it says of itself.
//
// Shape    Start waits until its memory is there; the destructor ends it. All waits are bounded.
// Units    ns of CLOCK_MONOTONIC, bytes.
#ifndef TESTS_BENCH_BENCH_RANK_H_
#define TESTS_BENCH_BENCH_RANK_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/attach/memory.h"
#include "agent/pipeline/experimenter.h"
#include "agent/shadow/rank_injector.h"
#include "tests/puppets/bench_rank.h"

namespace perfd::agent {

struct RankShape {
  int threads = 1;
  int64_t trip = 2000;
  uint64_t bytes = 64u << 20;
  bool huge = false;
};

class BenchRank {
 public:
  static absl::StatusOr<std::unique_ptr<BenchRank>> Start(const RankShape& shape);
  ~BenchRank();
  BenchRank(const BenchRank&) = delete;
  BenchRank& operator=(const BenchRank&) = delete;

  const RankInfo& info() const { return info_; }
  RankLoops Places() const;  // of its one loop
  absl::StatusOr<LoopToInject> Loop() const;
  // A lab with the loop installed. A crowded machine may need several attempts.
  absl::StatusOr<std::unique_ptr<RankInjector>> Install(const InjectorOptions& options) const;
  // The jump is in the text, or another byte of the loop differs from how it began.
  absl::StatusOr<bool> Altered() const;
  absl::StatusOr<bench_reading> Read() const;
  // Oldest first. Only of loops of 100,000 iterations and more.
  absl::StatusOr<std::vector<bench_pass>> Passes() const;
  struct Sweep {
    int64_t ns = 0;
    int64_t faults = 0;
  };
  // The rank writes to every page of the first `bytes` of its memory.
  absl::StatusOr<Sweep> SweepMemory(uint64_t bytes);

 private:
  BenchRank() = default;
  absl::Status Spawn(const RankShape& shape);
  absl::Status ReadPlaces();
  absl::StatusOr<bench_control> Control() const;

  pid_t pid_ = 0;
  int out_ = -1;
  RankInfo info_;
  uint64_t low_ = 0, header_ = 0, exit_ = 0, high_ = 0, control_ = 0;
  std::unique_ptr<Memory> memory_;
  std::vector<uint8_t> text_;
  uint64_t sweeps_ = 0;
};

}  // namespace perfd::agent

#endif  // TESTS_BENCH_BENCH_RANK_H_
