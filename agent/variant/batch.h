// agent/variant/batch.h - copies of a short loop that run on over many of its instances, through the code around it.
//
// Shape    an instance of some hundred cycles cannot be timed alone, and repeated it is learnt by the branch predictor. A chain
//          enters at the loop's header like any copy, goes on through a copy of the loop around it, and leaves after as many
//          instances as the thread block says, or where the loop around ends. Only the loop itself is ever changed. For shadows; REF is
//          also timed in the rank, by one thread at a time (CopyTarget::counter).
//          Left at its count, it may be entered again at CopyPlaces::turn with the registers that it was left with.
// Units    run-time addresses.
// Errors   FailedPrecondition: what stands between two instances cannot be copied (it calls, moves the stack pointer, ...).
// Source   docs/adr/0024-chains.md; design section 6 (hazard: "retreat to the outer loop").
#ifndef AGENT_VARIANT_BATCH_H_
#define AGENT_VARIANT_BATCH_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "agent/variant/copy.h"
#include "agent/variant/loop_code.h"

namespace perfd::agent {

struct BatchCode {
  LoopCode
      loop;  // as decoded alone; its black list and liveness know what the code around it needs
  LoopCode around;  // all that a copy holds; header and entry are the loop's
  // Counting turns changes no flag that may be in use, whatever follows: REF may run in the rank itself.
  bool may_run_live = false;
  uint32_t turn =
      0;  // instruction of `around` that lies before every further instance: the header of the loop around
};

// around: the loop that holds `loop`; its header is where it begins.
absl::StatusOr<BatchCode> DecodeBatch(const LoopCode& loop, const LoopBytes& around);
// The same batch with roles that rest on accesses being apart (batch.loop.taken_apart). None: that would free no instruction of the
// loop for any variant.
std::optional<BatchCode> TakeApart(const BatchCode& batch);

absl::StatusOr<CodeCopy> MakeBatchCopy(const BatchCode& batch, const VariantName& name,
                                       const CopyTarget& target);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_BATCH_H_
