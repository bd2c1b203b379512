// client/commands/spec_source.h - the spec of a submit: from a file, from flags, or a file changed by flags.
#ifndef CLIENT_COMMANDS_SPEC_SOURCE_H_
#define CLIENT_COMMANDS_SPEC_SOURCE_H_

#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/profile_spec.h"

namespace perfd::client {

struct SpecFlags {
  std::string file;  // empty: none; "-": standard input
  TargetSpec target;
  std::string ranks;
  std::string duration;      // "auto": until the hot loops are known
  std::string max_duration;  // with that
  std::string frequency;
  std::string event;
  std::string callpaths;
  std::string mode;
  std::vector<std::string> variants;  // "none" alone: none
  std::string overhead;
  std::string name;
};

// At most one byte more than a spec may have, so that the parser can refuse it.
absl::StatusOr<std::string> ReadSpecText(const std::string& file, std::istream& in);

// kInvalidArgument when the spec is wrong, kFailedPrecondition when the flags contradict each other.
absl::StatusOr<ProfileSpec> MakeSpec(const SpecFlags& flags, std::istream& in);

}  // namespace perfd::client

#endif  // CLIENT_COMMANDS_SPEC_SOURCE_H_
