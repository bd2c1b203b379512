// agent/shadow/install/jumps.h - the jumps in the text of a rank that lead into our copies: written, taken out, looked for.
//
// Shape    each jump is written in a stop that first checks the loop's bytes and moves threads out of the way.
// Errors   those of RankHold::Stop; kUnavailable: code has changed since it was decoded.
#ifndef AGENT_SHADOW_INSTALL_JUMPS_H_
#define AGENT_SHADOW_INSTALL_JUMPS_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "agent/attach/hold_request.h"
#include "agent/attach/memory.h"
#include "agent/shadow/rank/injected_rank.h"
#include "agent/variant/loop_code.h"

namespace perfd::agent {

// What copies were made of, and what must be there when threads are sent to them: a library may have been closed meanwhile, and
// another one loaded in its place.
std::vector<ExpectBytesOp> CodeOf(const LoopCode& loop);
bool Holds(const Memory& memory, const std::vector<ExpectBytesOp>& code);

// Caches become executable, and are not writable any more.
std::vector<HoldOp> ProtectOps(const std::vector<CodeCache>& caches, size_t first);

// All of a rank that has none yet, in one stop.
absl::Status WriteJumps(InjectedRank& rank);
// OK: the jump is in the text, or out of it, as wanted.
absl::Status SetPatched(InjectedRank& rank, PatchSite& site, bool patched);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_INSTALL_JUMPS_H_
