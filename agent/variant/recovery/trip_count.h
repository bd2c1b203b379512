// agent/variant/recovery/trip_count.h - proof that a loop ends, stores nothing and cannot fault where it would not have.
//
// Shape    ProveEnds accepts counted loops without loops inside only: one register steps by the same constant in every pass, and a branch that
//          every pass goes over leaves when it meets, or crosses, something that does not change. Neither a branch nor an
//          address may depend on anything that is read from memory: so a copy that leaves branches and addresses alone makes
//          the same passes and touches the same bytes, whatever other threads write meanwhile.
// Units    registers by number (agent/variant/instruction.h); distances modulo 2^(8 x bytes).
// Errors   FailedPrecondition: the first reason found, with the instruction; what is not understood is refused.
// Threads  pure.
// Source   design section 6, "Modes"; Intel SDM vol. 2, Jcc (conditions), vol. 1, 3.4.3 (EFLAGS).
#ifndef AGENT_VARIANT_RECOVERY_TRIP_COUNT_H_
#define AGENT_VARIANT_RECOVERY_TRIP_COUNT_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "agent/variant/loop_code.h"

namespace perfd::agent {

struct TripCount {
  int counter = kNoRegister;
  int bound = kNoRegister;  // none: the offset alone
  int64_t offset = 0;
  int64_t step = 0;  // per pass; never 0
  int bytes = 8;     // of the comparison: 4 or 8

  bool operator==(const TripCount&) const = default;
};

absl::StatusOr<TripCount> ProveEnds(const LoopCode& loop);

// What lies between counter and bound, in the direction of the steps: the loop makes at most Distance / |step| + 2 passes.
uint64_t Distance(const TripCount& trips, const std::array<uint64_t, 16>& registers);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_RECOVERY_TRIP_COUNT_H_
