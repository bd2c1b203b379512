#include "agent/app/guarded_proc.h"

#include <memory>

#include "agent/procfs/guarded/file_server.h"
#include "agent/procfs/guarded/guarded_files.h"
#include "agent/spawn/helper_process.h"

namespace perfd::agent {

// Without a helper, reads of other processes' memory fail.
ProcFs GuardedProc(const std::string& reader_binary, const Clock& clock) {
  const auto start = [reader_binary](int socket) {
    return StartHelper({"reader of /proc", reader_binary, {kFilesMode}}, socket);
  };
  return ProcFs("/proc", std::make_shared<GuardedFiles>(start, clock));
}

// Whoever waits for the memory of a process waits for its command line, too.
std::function<absl::Status(int32_t pid)> Answers(const ProcFs& procfs) {
  return [procfs](int32_t pid) {
    const absl::Status read = procfs.CommandLine(pid).status();
    return absl::IsUnavailable(read) ? read : absl::OkStatus();
  };
}

}  // namespace perfd::agent
