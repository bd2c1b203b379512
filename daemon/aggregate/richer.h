// daemon/aggregate/richer.h - which of two descriptions of the same thing is kept.
//
// Shape    strict total orders over all members: picking the greater one gives the same result in
//          any order of merging, even when agents disagree (one had DWARF, another had not).
// Threads  thread-safe (pure).
#ifndef DAEMON_AGGREGATE_RICHER_H_
#define DAEMON_AGGREGATE_RICHER_H_

#include "core/model/code.h"
#include "core/model/identity.h"
#include "daemon/aggregate/aggregate_state.h"

namespace perfd::daemon {

// More source lines, then a real name, then any fixed order.
bool Richer(const CodeLocation& a, const CodeLocation& b);

// The later process, then any fixed order.
bool Richer(const RankInfo& a, const RankInfo& b);

// The later window, then any fixed order.
bool LaterSetup(const NodeTotals& a, const NodeTotals& b);

}  // namespace perfd::daemon

#endif  // DAEMON_AGGREGATE_RICHER_H_
