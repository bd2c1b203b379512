// agent/shadow/run/in_situ_run.h - one recovery, from the plan to the answer. Outside P1: copies run in the threads of the rank.
//
// Shape    made for one request, Run once. Whatever ends it, the site is idle afterwards.
// Errors   of Run: as RankInjector::Recover; kDeadlineExceeded: no run was made, and why.
// Units    ns; ticks of the TSC.
// Threads  thread-compatible.
// Source   agent/shadow/recovery_plan.h; docs/adr/0010-recovery-mode.md.
#ifndef AGENT_SHADOW_RUN_IN_SITU_RUN_H_
#define AGENT_SHADOW_RUN_IN_SITU_RUN_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/shadow/rank/injected_rank.h"
#include "agent/shadow/recovery_request.h"
#include "agent/shadow/run/shadow_forecast.h"
#include "agent/shadow/shadow_plan.h"

namespace perfd::agent {

class InSituRun {
 public:
  // All of them must live longer. The site has its jump in the text.
  InSituRun(InjectedRank& rank, ShadowForecast& forecast, const PatchSite& site,
            const RecoveryRequest& request)
      : rank_(rank), forecast_(forecast), site_(site), request_(request) {}

  absl::StatusOr<RecoveryAnswer> Run();

 private:
  absl::Status MayRun();
  absl::Status CheckCopies() const;
  absl::Status Plan();
  absl::Status Arm();
  absl::StatusOr<bool> Await();
  absl::StatusOr<RecoveryAnswer> Collect(int64_t longest_ns) const;
  absl::StatusOr<RecoveryAnswer> RunPlanned();
  uint64_t SiteAddress() const { return rank_.region->SiteAddress(site_.number()); }
  absl::Status SetMode(uint32_t mode) const { return rank_.region->SetMode(site_.number(), mode); }

  InjectedRank& rank_;
  ShadowForecast& forecast_;
  const PatchSite& site_;
  const RecoveryRequest& request_;
  ShadowPlan plan_{};
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RUN_IN_SITU_RUN_H_
