// agent/shadow/rank/rank_hold.h - stops of one rank through the tracer: whether they may be, what they cost, what the audit log says.
//
// Shape    Stop does a list of operations in one stop; StopToRestore takes an injection out. Each asks who the rank is.
// Errors   kUnavailable: not now; kCancelled: nothing new is begun; kPermissionDenied: the rank's rights have changed.
// Units    ns.
// Threads  thread-compatible; StillAdmitted and Cancelled are thread-safe. The tracer is called from the caller's thread.
#ifndef AGENT_SHADOW_RANK_RANK_HOLD_H_
#define AGENT_SHADOW_RANK_RANK_HOLD_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/attach/hold_request.h"
#include "agent/shadow/rank/injected_code.h"
#include "agent/shadow/rank_injector.h"
#include "agent/shadow/restore.h"
#include "core/model/identity.h"
#include "core/model/loop_measurement.h"

namespace perfd::agent {

// kTakesOut: only what is ours, whoever the rank has become.
enum class StopPurpose : uint8_t { kAlters, kTakesOut };

class RankHold {
 public:
  // All three must live longer.
  RankHold(const RankInfo& rank, const InjectorOptions& options, InjectionCost* cost)
      : rank_(rank), options_(options), cost_(cost) {}

  absl::Status StillAdmitted() const;
  bool Cancelled() const { return options_.cancelled && options_.cancelled(); }
  absl::Status MayAlter() const;  // kCancelled: not any more

  absl::StatusOr<HoldReply> Stop(std::vector<HoldOp> ops,
                                 StopPurpose purpose = StopPurpose::kAlters);
  // As Stop, but why the list ended early is in the reply, beside the results so far.
  absl::StatusOr<HoldReply> TryStop(std::vector<HoldOp> ops,
                                    StopPurpose purpose = StopPurpose::kAlters);
  absl::Status StopToRestore(const Injection& injection, RestoreResult* result);
  // It, or a call that it gave up, may yet do something in the rank.
  bool tracer_died() const { return tracer_died_; }
  // So far.
  int64_t stop_ns() const { return cost_->stop_ns; }

  // site: of the loop; none: of the whole rank.
  void Audit(const char* action, const PatchSite* site, int64_t pause_ns,
             const absl::Status& outcome) const;

 private:
  const RankInfo& rank_;
  const InjectorOptions& options_;
  InjectionCost* const cost_;
  bool tracer_died_ = false;
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RANK_RANK_HOLD_H_
