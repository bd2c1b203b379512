// agent/app/leftovers/heal_after.h - a process that outlives a user's agent, and takes out of ranks what the agent left there because
//                                    it was killed.
//
// Shape    the agent holds a HealAfter. The process waits for the agent's end, however it comes, then heals the ranks that
//          journals name; those that cannot be healed again after 0.1 s, 0.2 s, ..., 30 s, for ten minutes at most. It leaves when
//          nothing is left, and when another agent holds the journals.
// Errors   as StartHelper.
// Threads  thread-compatible.
// Source   adr/0053.
#ifndef AGENT_APP_LEFTOVERS_HEAL_AFTER_H_
#define AGENT_APP_LEFTOVERS_HEAL_AFTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/app/leftovers/heal.h"
#include "agent/spawn/helper_process.h"

namespace perfd::agent {

class HealAfter {
 public:
  static absl::StatusOr<std::unique_ptr<HealAfter>> Start(const HealOptions& options);
  // The agent's end: the process is waited for where it has nothing to heal.
  ~HealAfter();
  HealAfter(const HealAfter&) = delete;
  HealAfter& operator=(const HealAfter&) = delete;

 private:
  explicit HealAfter(Helper helper) : helper_(std::move(helper)) {}

  Helper helper_;
};

// That process: its exit code. The agent has the other end of `socket`, and sends nothing. `answers`: as InjectorOptions.
int HealAfterAgent(int socket, const HealOptions& options,
                   const std::function<absl::Status(int32_t pid)>& answers);

}  // namespace perfd::agent

#endif  // AGENT_APP_LEFTOVERS_HEAL_AFTER_H_
