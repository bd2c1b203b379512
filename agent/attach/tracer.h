// agent/attach/tracer.h - holds ranks still, by a process of its own: perf-agent-tracer, the only one that uses ptrace.
//
// Shape    Start once, early (before threads and gRPC); Run is one stop of one rank. A tracer that died or hung is killed and
//          started again by the next Run.
// Errors   of Run itself (not of the reply): kUnavailable (the tracer died), kDeadlineExceeded (it hung and was killed),
//          kFailedPrecondition (it cannot be started), kInvalidArgument (request over its limits). In the first two any
//          prefix of the ops may have happened; the rank runs: the kernel releases what a dead tracer held.
// Units    waits at most the preparation limit, then 2 x max_stop_ns and a slack.
// Threads  thread-bound: the tracer dies with the thread that started it.
#ifndef AGENT_ATTACH_TRACER_H_
#define AGENT_ATTACH_TRACER_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/attach/hold_request.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {

struct TracerOptions {
  std::string program;                 // path of perf-agent-tracer
  std::vector<std::string> arguments;  // tests: --die-before-operation N, --hang-before-operation N
};

class Tracer {
 public:
  static absl::StatusOr<std::unique_ptr<Tracer>> Start(TracerOptions options);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  absl::StatusOr<HoldReply> Run(const HoldRequest& request);
  // Of a Run that failed: from when the tracer was about to stop the first thread until it was no more; 0: nothing was stopped.
  int64_t unanswered_stop_ns() const { return unanswered_stop_ns_; }
  const std::string& program() const { return options_.program; }
  pid_t pid() const { return pid_; }  // 0: has ended, the next Run starts another

 private:
  explicit Tracer(TracerOptions options) : options_(std::move(options)) {}
  absl::Status Spawn();
  std::string End();
  absl::Status Fail(const absl::Status& status, const HoldRequest& request);

  const TracerOptions options_;
  pid_t pid_ = 0;
  UniqueFd socket_;
  int64_t unanswered_stop_ns_ = 0;
};

}  // namespace perfd::agent

#endif  // AGENT_ATTACH_TRACER_H_
