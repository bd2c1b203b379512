// agent/shadow/run/armed_shadow.h - one arming of a site: plan, arm, wait for the team, serve the shadow, disarm, collect, charge.
//
// Shape    made for one request, Run once. Whatever ends it, the site is idle afterwards and the rank has paid for it.
// Errors   of Run: as RankInjector::RunShadow.
// Units    ns; ticks of the TSC.
// Threads  thread-compatible.
// Source   agent/shadow/protocol.h for the phases of a site; design section 6, steps 5 to 7.
#ifndef AGENT_SHADOW_RUN_ARMED_SHADOW_H_
#define AGENT_SHADOW_RUN_ARMED_SHADOW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/forking/process_files.h"
#include "agent/shadow/rank/injected_rank.h"
#include "agent/shadow/rank_injector.h"
#include "agent/shadow/run/shadow_forecast.h"
#include "agent/shadow/run/trimmed_forks.h"
#include "agent/shadow/run/trimmed_shadow.h"
#include "agent/shadow/shadow_plan.h"
#include "agent/shadow/shadow_reading.h"

namespace perfd::agent {

class ArmedShadow {
 public:
  // All of them must live longer. The site has its jump in the text.
  ArmedShadow(InjectedRank& rank, ShadowForecast& forecast, TrimmedForks& forks, PatchSite& site,
              const ShadowRequest& request)
      : rank_(rank), forecast_(forecast), forks_(forks), site_(site), request_(request) {}

  absl::StatusOr<ShadowAnswer> Run();

 private:
  absl::Status Plan();
  absl::Status Arm();
  absl::Status Await(int64_t timeout_ns);
  absl::Status Answer(uint32_t phase);
  absl::Status Serve();
  absl::Status CheckThreads(const std::vector<MapEntry>& maps) const;
  absl::Status WriteRanges(const std::vector<MapEntry>& maps);
  absl::StatusOr<ShadowAnswer> End(const absl::Status& ended);
  absl::StatusOr<ShadowAnswer> Collect() const;
  absl::Status ReadTraces(ShadowReading* reading) const;
  void ChargeArmed(const std::vector<ThreadRecord>& before);
  void ChargeEnd(const absl::Status& ended, absl::StatusOr<ShadowAnswer>* answer);
  int64_t PauseNs() const;
  uint64_t SiteAddress() const { return rank_.region->SiteAddress(site_.number()); }

  InjectedRank& rank_;
  ShadowForecast& forecast_;
  TrimmedForks& forks_;
  PatchSite& site_;
  const ShadowRequest& request_;
  ShadowPlan plan_{};
  MemoryFacts facts_;                  // of the rank, before
  std::optional<TrimmedShadow> trim_;  // none: the fork is a whole one
  std::vector<ProtectRange> protects_;
  bool served_ = false;
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RUN_ARMED_SHADOW_H_
