// agent/variant/recovery/in_situ.h - may this copy of a loop run in the live rank, before the loop itself?
//
// Shape    looks at the bytes of the copy, not at what its maker meant them to be: it stores nowhere but into the thread's own
//          block, loads nothing but what the loop loads at the same operand (or its block), goes nowhere but to its own
//          instructions, none of them in the middle, and the exit stub, and has every instruction that decides a branch or
//          an address byte by byte. Not looked at: which way a branch of the copy goes (branches and operands relative to the
//          instruction pointer are encoded anew), and whether code that was added gives back the registers it uses. For these
//          the relocation and the counting are trusted, which run every generated loop both ways (tests/unit/variant).
//          To be asked only for loops that ProveEnds accepts (trip_count.h).
// Errors   FailedPrecondition with the instruction of the copy.
// Threads  pure.
// Source   design section 6, "Modes".
#ifndef AGENT_VARIANT_RECOVERY_IN_SITU_H_
#define AGENT_VARIANT_RECOVERY_IN_SITU_H_

#include "absl/status/status.h"
#include "agent/variant/copy.h"
#include "agent/variant/loop_code.h"

namespace perfd::agent {

absl::Status CheckInSitu(const LoopCode& loop, const CodeCopy& copy, uint64_t exit_stub);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_RECOVERY_IN_SITU_H_
