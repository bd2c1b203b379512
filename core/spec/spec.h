// core/spec/spec.h - job.yaml: text to ProfileSpec and back, and the checks the daemon repeats.
//
// Shape    ParseProfileSpec(FormatProfileSpec(spec)) == spec for every spec that
// ValidateProfileSpec accepts. Errors   kInvalidArgument with every error found, one per line:
// "line L, column C: ...". Threads  thread-safe (pure). Source   design: job.yaml.
#ifndef CORE_SPEC_SPEC_H_
#define CORE_SPEC_SPEC_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/profile_spec.h"

namespace perfd {

// Strict: unknown and duplicate keys, wrong types, units and ranges are errors. What is not given
// has its default.
absl::StatusOr<ProfileSpec> ParseProfileSpec(absl::string_view text);

// Ranges and rules between keys, for a spec that did not come from YAML.
absl::Status ValidateProfileSpec(const ProfileSpec& spec);

// The whole spec with every default spelled out.
std::string FormatProfileSpec(const ProfileSpec& spec);

// One sentence for each part of the spec that this version accepts but does not measure yet.
std::vector<std::string> ListUnmeasured(const ProfileSpec& spec);

}  // namespace perfd

#endif  // CORE_SPEC_SPEC_H_
