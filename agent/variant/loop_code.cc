#include "agent/variant/loop_code.h"

#include "agent/variant/flow/body.h"
#include "agent/variant/flow/dataflow.h"
#include "agent/variant/flow/edges.h"
#include "agent/variant/flow/excluded_path.h"
#include "agent/variant/roles.h"
#include "agent/variant/symbolic.h"
#include "core/base/status_macros.h"

namespace perfd::agent {

absl::StatusOr<LoopCode> DecodeLoop(const LoopBytes& bytes) {
  LoopCode loop;
  loop.header = bytes.header;
  RETURN_IF_ERROR(ReadBody(bytes, &loop));
  ExcludePaths(&loop);
  RETURN_IF_ERROR(BuildEdges(&loop, Inside::kNoLoops));
  RETURN_IF_ERROR(CheckEntries(bytes, loop));
  loop.roles.resize(loop.instructions.size());
  AssignGroups(&loop);
  AssignRoles(&loop);
  const std::vector<Effect> effects = Effects(loop);
  loop.live_at_entry = LiveBefore(loop, effects, ~RegisterSet{0})[loop.entry];
  loop.used_at_entry = LiveBefore(loop, effects, 0)[loop.entry];
  return loop;
}

}  // namespace perfd::agent
