// agent/shadow/journal.h - what was done to which rank, on disk before it is done.
//
// Shape    one file per rank, PID-STARTTICKS.injection, replaced as a whole. Text, one fact per line; the last line is a
//          checksum.
// Safety   what a journal says is written into processes: the folder is ours (core/files/own_folder.h), and so is each file
//          that is read. Others are not believed; they stay where they are.
// Errors   kInvalidArgument: cut off or changed; kPermissionDenied: somebody else's, or others may write there; kNotFound:
//          none; kUnavailable: the disk refuses. Lock: kFailedPrecondition: an agent that runs holds it.
// Threads  thread-safe between different ranks.
#ifndef AGENT_SHADOW_JOURNAL_H_
#define AGENT_SHADOW_JOURNAL_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/shadow/injection.h"
#include "core/base/unique_fd.h"
#include "core/files/own_folder.h"

namespace perfd::agent {

std::string EncodeInjection(const Injection& injection);
absl::StatusOr<Injection> DecodeInjection(absl::string_view text);

class Journal {
 public:
  // Makes the folder when it is missing.
  static absl::StatusOr<Journal> Make(const std::string& directory);
  // Of a folder that is there.
  static absl::StatusOr<Journal> Open(const std::string& directory);

  // An agent holds its journals as long as it lives: what they name is then its own affair, or left by one that is no more.
  absl::StatusOr<UniqueFd> Lock() const;
  // Of this process only; kNotFound: there is none.
  absl::StatusOr<Injection> Read(int32_t pid, uint64_t start_ticks) const;
  absl::Status Write(const Injection& injection) const;
  absl::Status Remove(const Injection& injection) const;
  // Every rank named; files that do not decode or are not believed are listed in *damaged.
  std::vector<Injection> ReadAll(std::vector<std::string>* damaged) const;
  // Takes the folder away when nothing is in it.
  void RemoveEmpty() const { folder_.RemoveFolder().IgnoreError(); }

 private:
  explicit Journal(OwnFolder folder) : folder_(std::move(folder)) {}

  OwnFolder folder_;
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_JOURNAL_H_
