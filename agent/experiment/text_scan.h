// agent/experiment/text_scan.h - reads code around a loop: what its module's text may lead to, and what it calls.
//
// Shape    FindFarBranches reads the mapping that holds the loop, in pieces; some milliseconds for each 10 MB, in the agent, stopping
//          nobody. ReadCalledCode reads some pages, also of other modules, through the words that the linker has filled.
// Units    run-time addresses.
// Errors   kNotFound: the process or its mapping is gone; kResourceExhausted: the text is longer than 1 GiB.
// Threads  thread-safe.
#ifndef AGENT_EXPERIMENT_TEXT_SCAN_H_
#define AGENT_EXPERIMENT_TEXT_SCAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/attach/memory.h"
#include "agent/variant/loop_code.h"

namespace perfd::agent {

// Of branches outside the loop's function.
absl::StatusOr<std::vector<uint64_t>> FindFarBranches(const LoopCode& loop, const Memory& memory);

// Of functions that the body calls, as far as it may be of use: text and constants of files that the program cannot write to.
void ReadCalledCode(const Memory& memory, LoopBytes* bytes);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_TEXT_SCAN_H_
