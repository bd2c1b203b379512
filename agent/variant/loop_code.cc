#include "agent/variant/loop_code.h"

#include <utility>

#include "agent/variant/flow/body.h"
#include "agent/variant/flow/dataflow.h"
#include "agent/variant/flow/edges.h"
#include "agent/variant/flow/excluded_path.h"
#include "agent/variant/flow/leaf_calls.h"
#include "agent/variant/flow/nest.h"
#include "agent/variant/roles.h"
#include "agent/variant/symbolic.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
bool FreesMore(const LoopCode& apart, const LoopCode& loop) {
  for (size_t n = 0; n < loop.roles.size(); ++n) {
    const bool freed = loop.roles[n].fixed() && !apart.roles[n].fixed();
    // CTRL deletes what only addresses are made of.
    if (freed || (loop.roles[n].control && !apart.roles[n].control)) return true;
  }
  return false;
}

absl::StatusOr<LoopCode> DecodeLoop(const LoopBytes& bytes) {
  LoopCode loop;
  loop.header = bytes.header;
  RETURN_IF_ERROR(ReadBody(bytes, &loop));
  RETURN_IF_ERROR(CheckStackPointer(bytes));
  ExcludePaths(&loop);
  // Without these calls it may go round where it did not before.
  if (TakeInLeaves(bytes, &loop)) ExcludePaths(&loop);
  RETURN_IF_ERROR(BuildEdges(&loop));
  loop.inner = InnerLoops(loop);
  RETURN_IF_ERROR(CheckNest(loop));
  RETURN_IF_ERROR(CheckEntries(bytes, loop));
  loop.roles.resize(loop.instructions.size());
  AssignGroups(&loop);
  AssignRoles(&loop);
  const std::vector<Effect> effects = Effects(loop);
  loop.live.at_entry = LiveBefore(loop, effects, ~RegisterSet{0})[loop.entry];
  // Where the loop is left right behind a call, nobody looks at the flags that it left: no caller does.
  const std::vector<RegisterSet> inside = LiveBefore(loop, effects, ~kStatusFlags);
  for (const uint64_t back : loop.leaves.without_flags) {
    const int at = InstructionAt(loop, back);
    if (at < 0 || (inside[static_cast<size_t>(at)] & kStatusFlags) == 0) continue;
    return Refuse(loop.instructions[static_cast<size_t>(at)],
                  "looks at flags that a called function leaves");
  }
  return loop;
}

std::optional<LoopCode> TakeApart(const LoopCode& loop) {
  LoopCode apart = loop;
  apart.taken_apart.emplace();
  AssignRoles(&apart);
  return FreesMore(apart, loop) ? std::optional(std::move(apart)) : std::nullopt;
}

}  // namespace perfd::agent
