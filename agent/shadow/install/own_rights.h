// agent/shadow/install/own_rights.h - what a thread of the rank says of its own rights, for later looks of the payload. Pure.
//
// Shape    OwnRightsOps are done in a stop in which the rank is known to be the one that was admitted; OwnRightsOf reads the answer.
// Units    scratch: an address in the region that is not filled yet, where pairs of addresses come later.
// Source   getresuid(2), getresgid(2), capget(2), prctl(2) PR_GET_DUMPABLE.
#ifndef AGENT_SHADOW_INSTALL_OWN_RIGHTS_H_
#define AGENT_SHADOW_INSTALL_OWN_RIGHTS_H_

#include <cstdint>
#include <vector>

#include "agent/attach/hold_request.h"
#include "agent/shadow/protocol.h"

namespace perfd::agent {

std::vector<HoldOp> OwnRightsOps(uint64_t scratch);
// reply: of a stop whose last operations were these.
OwnRights OwnRightsOf(const HoldReply& reply);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_INSTALL_OWN_RIGHTS_H_
