// agent/shadow/shadow_reading.h - from what a shadow left in the region to the answer. Pure; the bytes are foreign.
//
// Shape    threads are numbered by their thread ids, so that a number means the same thread in every shadow.
// Errors   kUnavailable: nothing was run, another try may succeed; kFailedPrecondition: it will not.
#ifndef AGENT_SHADOW_SHADOW_READING_H_
#define AGENT_SHADOW_SHADOW_READING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/shadow/calls/trapped_call.h"
#include "agent/shadow/rank_injector.h"
#include "agent/shadow/shadow_plan.h"

namespace perfd::agent {

inline constexpr size_t kProbeRuns = 3;  // of an empty copy: one before and two after the others

// What the region alone does not tell of a shadow that did not come to its end.
struct EarlyEnd {
  bool fault_in_rank = false;  // the first fault was at an address that the rank itself has mapped
  std::optional<TrappedCall> trapped;  // what ChildControl::trap is about
};

struct ShadowReading {
  Site site{};
  ChildControl child{};
  std::vector<RunResult> results;                // (runs + kProbeRuns) x team
  std::vector<std::vector<TraceRecord>> traces;  // by place in the team
  std::vector<uint64_t> excluded_paths;          // kBlockExcludedPath, by place in the team
  uint32_t team = 0;
  size_t runs = 0;
  int32_t trace_run = -1;
  std::vector<int32_t> variants;  // of each run
  std::vector<const CodeCopy*> copies;
  std::vector<ProtectRange> protects;  // what the shadow was kept away from
  std::vector<PcRange> trimmed_out;    // what it had not at all
  EarlyEnd early_end;
};

absl::StatusOr<ShadowAnswer> ReadAnswer(const ShadowReading& reading);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_SHADOW_READING_H_
