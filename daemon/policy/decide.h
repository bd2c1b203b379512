// daemon/policy/decide.h - the policy applied to one job. Pure: the same inputs give the same decision.
//
// Shape    CounterOf says in which sequence the job counts; Decide takes how many that sequence has had.
//          Order: rule "never"; the user's refusal; the user's wish; rule "profile"; every Nth; then the quota.
//          Only jobs for which every Nth is asked are counted: those that are asked for, refused or ruled out are not.
// Source   job number n of a sequence is chosen when (n + seed) % every == 0; docs/adr/0015.
#ifndef DAEMON_POLICY_DECIDE_H_
#define DAEMON_POLICY_DECIDE_H_

#include <cstdint>
#include <string>

#include "core/model/hook.h"
#include "core/model/policy.h"

namespace perfd::daemon {

struct PolicyUse {
  int64_t counted = 0;  // jobs of the sequence so far
  int64_t active = 0;   // profiles of jobs that are not over
  int64_t today = 0;    // begun today, without those that saw no process
};

struct PolicyChoice {
  HookAnswer answer;   // without a profile
  int64_t number = 0;  // of the job in its sequence; 0: it is not counted
  std::string preset;  // with kProfile

  bool operator==(const PolicyChoice&) const = default;
};

// Empty: of the policy itself; else of the rule that has its own `every`, by what it matches, so that rules may be moved.
std::string CounterOf(const Policy& policy, const HookJob& job);

PolicyChoice Decide(const Policy& policy, const HookJob& job, const PolicyUse& use);

// Nanoseconds since the epoch of the last midnight (UTC).
int64_t MidnightNs(int64_t unix_ns);

}  // namespace perfd::daemon

#endif  // DAEMON_POLICY_DECIDE_H_
