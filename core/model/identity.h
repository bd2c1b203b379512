// core/model/identity.h - who is asking, and what a rank is.
#ifndef CORE_MODEL_IDENTITY_H_
#define CORE_MODEL_IDENTITY_H_

#include <compare>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace perfd {

// The person behind a request, as the daemon established it (peer credentials or certificate).
struct Requester {
  uint32_t uid = 0;
  std::string name;
  bool privileged = false;  // root or a member of the site's profiler group: may profile anyone

  bool operator==(const Requester&) const = default;
};

// Of a user whom the databases do not know: no name of an account has a colon.
inline constexpr absl::string_view kUnknownUser = "uid:";

// Where the rank number of a process came from.
enum class RankSource { kNone, kPmix, kOpenMpi, kPmi, kSlurm };

// One process of the job under measurement. Non-MPI processes are rank 0 of 1.
struct RankInfo {
  std::string node;
  int32_t pid = 0;
  uint32_t uid = 0;
  uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat: tells a reused pid from this process
  int32_t rank = 0;
  int32_t world_size = 1;  // 0: unknown
  RankSource source = RankSource::kNone;
  std::string job_id;   // Slurm job, or the launcher's name space; empty when unknown
  std::string command;  // base name of the executable

  bool operator==(const RankInfo&) const = default;
};

// One thread on one node, the finest key of every figure.
struct ThreadKey {
  std::string node;
  int32_t rank = 0;
  int32_t pid = 0;
  int32_t tid = 0;

  auto operator<=>(const ThreadKey&) const = default;
  bool operator==(const ThreadKey&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_IDENTITY_H_
