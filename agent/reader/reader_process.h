// agent/reader/reader_process.h - a running reader and the conversation with it.
//
// Shape    Start, then Send and Receive frames; the first failure ends the process for good.
// Units    deadlines in ns of CLOCK_MONOTONIC.
// Errors   kFailedPrecondition (cannot be started, or has ended before), kDeadlineExceeded (too slow: killed), kInternal
//          (died; the message says how).
// Threads  thread-bound. The reader dies with the thread that started it. No call waits longer than its deadline.
#ifndef AGENT_READER_READER_PROCESS_H_
#define AGENT_READER_READER_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/spawn/helper_process.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {

int64_t DeadlineAfter(absl::Duration timeout);

class ReaderProcess {
 public:
  // From this thread's host for that user, which loads the program once. subject: what it reads, for messages.
  static absl::StatusOr<std::unique_ptr<ReaderProcess>> Start(
      const std::string& program, uint32_t uid, const std::vector<std::string>& arguments,
      const std::string& subject);
  // Loads the program itself: for those that stay. The process list tells its arguments.
  static absl::StatusOr<std::unique_ptr<ReaderProcess>> StartAlone(
      const std::string& program, const std::vector<std::string>& arguments,
      const std::string& subject);
  ~ReaderProcess();
  ReaderProcess(const ReaderProcess&) = delete;
  ReaderProcess& operator=(const ReaderProcess&) = delete;

  absl::Status Send(absl::string_view message, int64_t deadline_ns);
  absl::StatusOr<std::string> Receive(int64_t deadline_ns);
  // CPU time it has used so far; 0 when it has ended.
  uint64_t CpuNs() const;
  pid_t pid() const { return pid_; }  // 0: has ended

 private:
  static absl::StatusOr<std::unique_ptr<ReaderProcess>> StartBy(HelperStart start,
                                                                std::string subject);
  ReaderProcess(pid_t pid, UniqueFd socket, std::string subject)
      : pid_(pid), socket_(std::move(socket)), subject_(std::move(subject)) {}
  std::string End();
  absl::Status Fail(const absl::Status& status);
  absl::Status Gone() const;

  pid_t pid_;
  UniqueFd socket_;
  const std::string subject_;
};

}  // namespace perfd::agent

#endif  // AGENT_READER_READER_PROCESS_H_
