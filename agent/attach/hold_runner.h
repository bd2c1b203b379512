// agent/attach/hold_runner.h - carries out one HoldRequest: prepare, stop, ops in order, release.
//
// Shape    everything slow (maps, searching code, checks) is done before `about_to_stop` is called; after it only /proc and
//          ptrace. The reply is made after the release.
// Units    as HoldRequest.
// Threads  thread-bound.
#ifndef AGENT_ATTACH_HOLD_RUNNER_H_
#define AGENT_ATTACH_HOLD_RUNNER_H_

#include <functional>
#include <optional>

#include "agent/attach/gadgets.h"
#include "agent/attach/hold_request.h"
#include "agent/attach/operations.h"
#include "agent/attach/thread/signal_frame.h"
#include "agent/attach/thread_status.h"

namespace perfd::agent {

class HoldRunner {
 public:
  explicit HoldRunner(Operations& operations)
      : operations_(operations), layout_(XsaveLayout::OfThisCpu()) {}

  // about_to_stop: just before the first thread is seized. released: just after the last was let go.
  HoldReply Run(const HoldRequest& request, const std::function<void()>& about_to_stop,
                const std::function<void()>& released);

 private:
  // What is known before the stop.
  struct Target {
    Memory memory;
    ProcessIdentity identity;
    Gadgets gadgets;  // when there is a call to make
  };
  static absl::StatusOr<Target> Prepare(const HoldRequest& request);
  void HoldAndRun(const HoldRequest& request, const Target& target, HoldReply& reply);

  Operations& operations_;
  const XsaveLayout layout_;
};

}  // namespace perfd::agent

#endif  // AGENT_ATTACH_HOLD_RUNNER_H_
