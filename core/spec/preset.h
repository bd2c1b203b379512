// core/spec/preset.h - a profile without a target, inside another file.
//
// Shape    the keys of job.yaml but `target`; what is not given has its default.
// Errors   added to `errors` with their positions.
// Threads  thread-safe (pure).
#ifndef CORE_SPEC_PRESET_H_
#define CORE_SPEC_PRESET_H_

#include "core/model/profile_spec.h"
#include "core/spec/field.h"
#include "core/spec/yaml_tree.h"

namespace perfd {

ProfileSpec ReadPreset(const YamlNode& node, SpecErrors* errors);

}  // namespace perfd

#endif  // CORE_SPEC_PRESET_H_
