// daemon/policy/hostlist.h - the host lists of batch schedulers: "n[1-4,07],m3" to names. Pure.
//
// Shape    names in order, each once; numbers keep their leading zeros: n[08-10] is n08 n09 n10.
// Errors   kInvalidArgument (syntax, characters, a name over kMaxHostBytes), kResourceExhausted (over kMaxHosts).
// Source   Slurm sbatch(1) --nodelist, "node range expression"; several brackets in a name multiply.
#ifndef DAEMON_POLICY_HOSTLIST_H_
#define DAEMON_POLICY_HOSTLIST_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perfd::daemon {

inline constexpr size_t kMaxHosts = 16384;
inline constexpr size_t kMaxHostBytes = 255;

absl::StatusOr<std::vector<std::string>> ExpandHostList(absl::string_view text);

}  // namespace perfd::daemon

#endif  // DAEMON_POLICY_HOSTLIST_H_
