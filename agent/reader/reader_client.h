// agent/reader/reader_client.h - asks a confined reader process about the code of one module.
//
// Shape    Start forks and executes perf-agent-reader for one ELF file; Lookup asks it for functions and loops.
// Errors   kNotFound (file and mapping gone), kPermissionDenied, kInvalidArgument (not an ELF file for this machine),
//          kDeadlineExceeded (the reader was too slow and has been killed), kInternal (reader died).
// Threads  thread-bound. No call waits longer than its timeout.
// Safety   the reader runs under the target's uid, may open nothing after start, and has limits on memory and time;
//          whatever it answers is checked here as foreign bytes.
#ifndef AGENT_READER_READER_CLIENT_H_
#define AGENT_READER_READER_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/reader/reader_process.h"
#include "core/model/module.h"

namespace perfd::agent {

// Which file, and under whose rights to read it.
struct ModuleFile {
  int32_t pid = 0;  // a process that has it mapped
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::string path;  // as that process sees it (looked up below /proc/PID/root)
  uint32_t device_major =
      0;  // identity of the mapped file: a replaced file at the same path is not read
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  uint64_t map_start = 0;  // one mapping of it, for /proc/PID/map_files when the path is gone
  uint64_t map_end = 0;
};

struct ReaderOptions {
  std::string reader_binary;                        // path of perf-agent-reader
  uint64_t memory_limit_bytes = uint64_t{4} << 30;  // address space of the reader
  absl::Duration start_timeout = absl::Seconds(10);
};

class ReaderClient {
 public:
  static absl::StatusOr<std::unique_ptr<ReaderClient>> Start(
      const ModuleFile& file, const ReaderOptions& options,
      ModuleDetail detail = ModuleDetail::kLines);
  const ModuleFacts& facts() const { return facts_; }
  int32_t pid() const { return process_->pid(); }
  // Functions around `addresses` (ELF virtual addresses, at most 65536).
  absl::StatusOr<CodeFacts> Lookup(const std::vector<ElfAddress>& addresses,
                                   absl::Duration timeout);
  // Whether the file's code has these bytes there; at most 65536.
  absl::StatusOr<bool> HasBytes(ElfAddress address, absl::string_view bytes,
                                absl::Duration timeout);

 private:
  explicit ReaderClient(std::unique_ptr<ReaderProcess> process) : process_(std::move(process)) {}

  std::unique_ptr<ReaderProcess> process_;
  ModuleFacts facts_;
};

}  // namespace perfd::agent

#endif  // AGENT_READER_READER_CLIENT_H_
