// agent/app/leftovers/leftovers.h - what an agent that is no more left in the ranks of this node, taken out when the next one starts.
//
// Shape    AdoptJournals locks the journals for as long as the result lives and heals every rank they name; each is logged, and
//          so is each journal that is damaged or not ours, with their number.
// Errors   kPermissionDenied: the folder is not ours. kFailedPrecondition: another agent that runs works with these journals. Ranks
//          that cannot be healed now keep their journals: HealBefore tries again when they are to be measured.
// Rules    `answers` as in InjectorOptions: a rank whose memory is locked does not keep the agent from its start.
// Units    at most some 30 s; nothing at all where nothing was left.
#ifndef AGENT_APP_LEFTOVERS_LEFTOVERS_H_
#define AGENT_APP_LEFTOVERS_LEFTOVERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/app/leftovers/heal_after.h"
#include "agent/shadow/journal.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {

struct HeldJournals {
  std::unique_ptr<HealAfter> heal_after;  // null: none; begins once the lock is gone
  Journal journal;
  UniqueFd lock;
};

absl::StatusOr<std::unique_ptr<HeldJournals>> AdoptJournals(
    const std::string& directory, const std::string& tracer_binary,
    std::function<absl::Status(int32_t pid)> answers);

}  // namespace perfd::agent

#endif  // AGENT_APP_LEFTOVERS_LEFTOVERS_H_
