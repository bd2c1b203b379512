// core/spec/spec_check.h - the rules between keys, shared by the parser and the daemon's checks.
#ifndef CORE_SPEC_SPEC_CHECK_H_
#define CORE_SPEC_SPEC_CHECK_H_

#include <string>
#include <vector>

#include "core/model/profile_spec.h"

namespace perfd {

struct RuleError {
  std::string path;  // the key it is about
  std::string text;
};

// Exactly one target, `user` only with `command`, a usable event name.
std::vector<RuleError> CheckRules(const ProfileSpec& spec);

}  // namespace perfd

#endif  // CORE_SPEC_SPEC_CHECK_H_
