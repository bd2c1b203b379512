// core/model/policy.h - which jobs of a site are profiled without being asked.
//
// Shape    plain values; read by core/spec/policy.h, applied by daemon/policy.
// Units    durations in ns.
#ifndef CORE_MODEL_POLICY_H_
#define CORE_MODEL_POLICY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/model/profile_spec.h"

namespace perfd {

// A job matches when each list that is not empty names it.
struct PolicyMatch {
  std::vector<std::string> partitions;
  std::vector<std::string> users;
  std::vector<std::string> accounts;

  bool operator==(const PolicyMatch&) const = default;
};

// The first rule that matches a job is the only one that counts.
struct PolicyRule {
  enum class Action {
    kCount,    // as jobs without a rule, perhaps with its own `every`
    kProfile,  // always
    kNever,
  };
  PolicyMatch match;
  Action action = Action::kCount;
  std::optional<int32_t> every;  // with kCount: counted apart from all other jobs
  std::string preset;            // empty: the policy's

  bool operator==(const PolicyRule&) const = default;
};

struct Policy {
  int32_t every = 0;  // every Nth job; 0: only those that are asked for
  int32_t seed = 0;   // shifts which of the N
  int32_t quota_active = 4;
  int32_t quota_per_day = 100;
  bool users_opt_in = true;
  bool users_opt_out = true;
  int64_t wait_ns = 1'800'000'000'000;  // for the first rank of a job
  std::string preset = "default";
  std::map<std::string, ProfileSpec> presets = {{"default", FixedLengthSpec()}};  // without targets
  std::vector<PolicyRule> rules;

  bool operator==(const Policy&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_POLICY_H_
