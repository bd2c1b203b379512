// core/hosts/host_list.h - the host lists of batch schedulers: "n[1-4,07],m3" to names. Pure.
//
// Shape    names in order, each once; numbers keep their leading zeros: n[08-10] is n08 n09 n10.
// Errors   kInvalidArgument (syntax, characters, a name over kMaxHostBytes), kResourceExhausted (over kMaxHosts).
// Source   Slurm sbatch(1) --nodelist, "node range expression"; several brackets in a name multiply.
#ifndef CORE_HOSTS_HOST_LIST_H_
#define CORE_HOSTS_HOST_LIST_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perfd {

inline constexpr size_t kMaxHosts = 16384;
inline constexpr size_t kMaxHostBytes = 255;

absl::StatusOr<std::vector<std::string>> ExpandHostList(absl::string_view text);

// "n1, n2 and 3 more", for messages.
std::string SomeHosts(std::vector<std::string> names);

}  // namespace perfd

#endif  // CORE_HOSTS_HOST_LIST_H_
