// agent/experiment/preparation.h - from where a loop lies in a process to what an injector installs.
//
// Shape    PrepareLoop reads the function's bytes from the running process: what runs is what is copied, whatever the file says.
// Units    run-time addresses.
// Errors   kFailedPrecondition: the loop is refused, with the reason; kNotFound: the process is gone.
// Threads  thread-safe.
#ifndef AGENT_EXPERIMENT_PREPARATION_H_
#define AGENT_EXPERIMENT_PREPARATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/attach/memory.h"
#include "agent/pipeline/experimenter.h"
#include "agent/shadow/rank_injector.h"

namespace perfd::agent {

inline constexpr uint64_t kMaxFunctionBytes = 4u << 20;

// Where the loop's blocks are. InvalidArgument when the function does not know the loop.
absl::StatusOr<LoopBytes> LocateLoop(const LoopSite& place);

absl::StatusOr<LoopToInject> PrepareLoop(const LoopSite& place,
                                         const std::vector<std::string>& variants,
                                         const Memory& memory);

// Whether the TSC ticks steadily on this machine.
bool TscIsInvariant();

// Ticks of the TSC per ns, by watching both clocks for some 20 ms; 0: the TSC does not tick steadily on this machine.
double MeasureTicksPerNs();

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_PREPARATION_H_
