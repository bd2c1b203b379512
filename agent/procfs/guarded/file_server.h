// agent/procfs/guarded/file_server.h - the helper's side of guarded reads: one after the other, each as long as it takes.
//
// Shape    ServeSlowFiles says that it is ready, then answers until the agent goes; a read that hangs then ends with the process.
//          The codec is both sides'.
// Errors   in the answer, with its code. Decode*: kInvalidArgument.
#ifndef AGENT_PROCFS_GUARDED_FILE_SERVER_H_
#define AGENT_PROCFS_GUARDED_FILE_SERVER_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/procfs/slow_files.h"

namespace perfd::agent {

inline constexpr char kFilesMode[] = "files";  // the first and only word

std::string EncodeRead(const SlowRead& read);
absl::StatusOr<SlowRead> DecodeRead(absl::string_view message);
std::string EncodeAnswer(const absl::StatusOr<std::string>& answer);
absl::StatusOr<std::string> DecodeAnswer(absl::string_view message);

using PerformRead = absl::FunctionRef<absl::StatusOr<std::string>(const SlowRead&)>;
void ServeSlowFiles(int socket, PerformRead perform = ReadSlowFile);

}  // namespace perfd::agent

#endif  // AGENT_PROCFS_GUARDED_FILE_SERVER_H_
