// core/spec/policy.h - policy.yaml: which jobs of a site are profiled without being asked.
//
// Shape    strict: unknown and duplicate keys, wrong types and ranges are errors. What is not given has its default.
// Errors   kInvalidArgument with every error found, one per line: "line L, column C: ...".
// Threads  thread-safe (pure).
// Source   docs/scheduler_hook.md, "The policy".
#ifndef CORE_SPEC_POLICY_H_
#define CORE_SPEC_POLICY_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/policy.h"

namespace perfd {

absl::StatusOr<Policy> ParsePolicy(absl::string_view text);

}  // namespace perfd

#endif  // CORE_SPEC_POLICY_H_
