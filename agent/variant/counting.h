// agent/variant/counting.h - code that counts passes through the header and records the addresses of accesses.
//
// Shape    everything goes through GS into the thread block; registers and flags are preserved, the stack is not touched.
// Source   thread_block.h; LAHF, SAHF, SETcc: Intel SDM vol. 2.
#ifndef AGENT_VARIANT_COUNTING_H_
#define AGENT_VARIANT_COUNTING_H_

#include "absl/status/status.h"
#include "agent/variant/rewrite.h"

namespace perfd::agent {

// Counts passes, and those of loops inside (kBlockInnerPasses); with an exit stub it leaves the copy when the limit is reached, before
// a pass of the loop itself, and notes whether it left through a path
// that was cut out of the loop.
// `chain`: also how many instances were entered, which is not every turn of the loop around.
void AddCounting(const LoopCode& loop, const CopyTarget& target, bool batch, Draft* draft);

// One TraceRecord per entry of References(loop, draft) that is traced: what a change has taken away or pinned is not. And the way
// through the blocks (kBlockPath).
absl::Status AddTracing(const LoopCode& loop, Draft* draft);

// Before instruction `at` (its address: `original`), where no flag is in use: leaves the copy once as many instances as
// kBlockInstancesLeft says have begun (batch.h).
void CountInstances(uint32_t at, uint64_t original, const CopyTarget& target, Draft* draft);

std::vector<Reference> References(const LoopCode& loop);
std::vector<Reference> References(const LoopCode& loop, const Draft& draft);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_COUNTING_H_
