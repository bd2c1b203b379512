// agent/reader/unwind_client.h - asks a confined reader process for the call paths of one process.
//
// Shape    Start executes perf-agent-reader in mode unwind with the process's code mappings; Unwind asks it for one path.
// Errors   kNotFound (none of its files can be read), kDeadlineExceeded (too slow: killed), kInternal (died).
// Threads  thread-bound; the reader dies with the thread that started it. No call waits longer than its timeout.
// Safety   as for ReaderClient: the target's uid, confined before a byte of a file is interpreted, answers are foreign.
#ifndef AGENT_READER_UNWIND_CLIENT_H_
#define AGENT_READER_UNWIND_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/reader/reader_client.h"
#include "agent/reader/reader_process.h"
#include "core/model/stack.h"

namespace perfd::agent {

struct UnwindProcess {
  int32_t pid = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
};

class UnwindClient {
 public:
  static absl::StatusOr<std::unique_ptr<UnwindClient>> Start(
      const UnwindProcess& target, const std::vector<CodeMapping>& mappings,
      const ReaderOptions& options);

  absl::StatusOr<CallPath> Unwind(const StackCopy& copy, absl::Duration timeout);
  uint64_t CpuNs() const { return process_->CpuNs(); }
  int32_t pid() const { return process_->pid(); }

 private:
  explicit UnwindClient(std::unique_ptr<ReaderProcess> process) : process_(std::move(process)) {}

  std::unique_ptr<ReaderProcess> process_;
};

}  // namespace perfd::agent

#endif  // AGENT_READER_UNWIND_CLIENT_H_
