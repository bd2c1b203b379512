// agent/shadow/journal.h - what was done to which rank, on disk before it is done.
//
// Shape    one file per rank, PID-STARTTICKS.injection, replaced as a whole: written beside, synced, renamed, folder synced.
//          Text, one fact per line; the last line is a checksum.
// Errors   kInvalidArgument: not ours, cut off or changed; kNotFound: none; kUnavailable: the disk refuses.
//          Lock: kFailedPrecondition: an agent that runs holds it; kPermissionDenied: others may write there, and what
//          a journal says is written into processes.
// Threads  thread-safe between different ranks.
// Source   rename(2), fsync(2), flock(2).
#ifndef AGENT_SHADOW_JOURNAL_H_
#define AGENT_SHADOW_JOURNAL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/shadow/injection.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {

std::string EncodeInjection(const Injection& injection);
absl::StatusOr<Injection> DecodeInjection(absl::string_view text);

class Journal {
 public:
  explicit Journal(std::string directory) : directory_(std::move(directory)) {}

  // An agent holds its journals as long as it lives: what they name is then its own affair, or left by one that is no more.
  absl::StatusOr<UniqueFd> Lock() const;
  // Of this process only; kNotFound: there is none.
  absl::StatusOr<Injection> Read(int32_t pid, uint64_t start_ticks) const;
  absl::Status Write(const Injection& injection) const;
  absl::Status Remove(const Injection& injection) const;
  // Every rank named; files that do not decode are listed in *damaged.
  std::vector<Injection> ReadAll(std::vector<std::string>* damaged) const;

 private:
  std::string PathOf(const Injection& injection) const;

  std::string directory_;
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_JOURNAL_H_
